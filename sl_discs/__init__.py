"""Stochastic localization on top of discrete MCMC samplers, for binary quadratic models and beyond."""

from sl_discs.version import __version__

__all__ = ["__version__"]
