"""Base samplers, which depend neither on graphs nor on stochastic localization."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "draws": ["draw_site"],
        "registry": ["known_samplers", "register_sampler"],
        "sampler": ["Chain", "Info", "Sampler", "accept_or_keep"],
    },
)
