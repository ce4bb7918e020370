"""Base samplers, which depend neither on graphs nor on stochastic localization."""

import lazy_loader

from sl_discs.samplers.registry import known_samplers, register_sampler

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={"sampler": ["Chain", "Counters", "Info", "Sampler", "accept_or_keep"], "draws": ["draw_site"]},
)
__all__ += ["known_samplers", "register_sampler"]
