"""Targets on {0,1}^N: values, flip gains, and their updates after flips; random keys, and maps over
chains.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["keys"],
    submod_attrs={"model": ["Categories", "Model", "Target", "apply_flips"]},
)
