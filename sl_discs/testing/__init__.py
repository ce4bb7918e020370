"""A public conformance suite for samplers, including third-party ones."""

from sl_discs.testing.conformance import (
    Case,
    ConformanceError,
    Law,
    all_states,
    check_case,
    check_convergence,
    check_sampler,
    enumerate_law,
    standard_cases,
    state_index,
    total_variation,
)

__all__ = [
    "Case",
    "ConformanceError",
    "Law",
    "all_states",
    "check_case",
    "check_convergence",
    "check_sampler",
    "enumerate_law",
    "standard_cases",
    "state_index",
    "total_variation",
]
