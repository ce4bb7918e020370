"""Base samplers, which depend neither on graphs nor on stochastic localization."""

from sl_discs.samplers.registry import known_samplers, register_sampler

__all__ = ["known_samplers", "register_sampler"]
