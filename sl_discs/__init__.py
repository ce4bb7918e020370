"""Stochastic localization on top of discrete MCMC samplers, for binary quadratic models and beyond.

problem = sl_discs.maxcut(graph)
result = sl_discs.solve(problem, "sl_path_auxiliary", seed=0)
result.best_value, result.best_sample
samples = sl_discs.sample(problem, temperature=2.0)
samples.verdict, samples.mean("value"), samples.marginals

`__init__.pyi` lists the public names, which are imported on first use.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
