"""Stochastic localization on top of discrete MCMC samplers, for binary quadratic models and beyond.

problem = sl_discs.maxcut(graph)
result = sl_discs.solve(problem, "sl_path_auxiliary", seed=0)
result.best_value, result.best_sample
samples = sl_discs.sample(problem, temperature=2.0)
samples.verdict, samples.mean("value"), samples.marginals
"""

import importlib
from typing import Any

from sl_discs.problem_names import CATEGORICAL, FORM_PROBLEMS, GRAPH_PROBLEMS
from sl_discs.version import __version__

_CONSTRAINTS = ("Linear", "at_least", "at_most", "exactly", "linear", "one_hot")
# The module of each name. Names are imported on first use, and JAX only with `solve` and `sample`.
_HOMES = {
    "Graph": "sl_discs.instances.graph",
    "InputError": "sl_discs.errors",
    "Problem": "sl_discs.problems",
    "Result": "sl_discs.solving.result",
    "Samples": "sl_discs.sampling.samples",
    "from_bqm": "sl_discs.problems",
    "from_cqm": "sl_discs.problems",
    "from_log_density": "sl_discs.problems.density",
    "register_problem": "sl_discs.problems",
    "sample": "sl_discs.sampling.sample",
    "solve": "sl_discs.solving.solve",
} | dict.fromkeys((*GRAPH_PROBLEMS, *FORM_PROBLEMS, *CATEGORICAL, *_CONSTRAINTS), "sl_discs.problems")

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
