"""A public conformance suite for samplers, including third-party ones, and a score for anybody's draws."""

from sl_discs.testing.cases import Case, Law, all_states, enumerate_law, standard_cases, state_index
from sl_discs.testing.conformance import (
    ConformanceError,
    check_case,
    check_convergence,
    check_sampler,
    total_variation,
)
from sl_discs.testing.exact_moments import DrawsCheck, ExactMoments, check_draws, exact_moments

__all__ = [
    "Case",
    "ConformanceError",
    "DrawsCheck",
    "ExactMoments",
    "Law",
    "all_states",
    "check_case",
    "check_convergence",
    "check_draws",
    "check_sampler",
    "enumerate_law",
    "exact_moments",
    "standard_cases",
    "state_index",
    "total_variation",
]
