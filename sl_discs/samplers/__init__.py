"""Base samplers. They know neither graphs nor stochastic localization."""

from sl_discs.samplers.registry import known_samplers, register_sampler

__all__ = ["known_samplers", "register_sampler"]
