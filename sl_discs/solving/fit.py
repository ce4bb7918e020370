"""Estimates the memory and time that building the arrays of a problem will take, before they are built."""

from __future__ import annotations

from sl_discs.capacity import check_memory
from sl_discs.engines.base import Engine
from sl_discs.experiment.batches import Layout, Shape, padded_size
from sl_discs.experiment.memory import batch_bytes, program_bytes
from sl_discs.problems import Problem
from sl_discs.solving.recipe import Recipe, tries_one_site

# Bytes of a term in the problem, in the model, and in the matrices for temperatures and exact values.
_TERM_BYTES = 60
# The least number of terms that one core processes per second.
_TERMS_PER_S = 2e6


def check_fit(problem: Problem, recipe: Recipe, steps: int, engine: Engine, shape: Shape | None = None) -> None:
    """Compares the estimated memory with that of the machine.

    Args:
      problem: the problem to sample.
      recipe: of the chains.
      steps: of a chain.
      engine: the engine used.
      shape: of the batch; None: not known yet, so couplings do not count.

    Raises:
      InputError: it does not fit.
    """
    size, terms = problem.num_variables, problem.num_terms
    shape = shape or Shape(padded_size(size), 1, recipe.chains, 0, Layout(1, 1))
    logged = min(steps, 100)
    need = terms * _TERM_BYTES + program_bytes(steps, not tries_one_site(recipe.sampler))
    need += batch_bytes(shape, logged, engine.name) * shape.layout.instances * shape.layout.chains
    check_memory(
        f"{problem.name} ({size:,} variables, {terms:,} terms) with {recipe.chains:,} chains of {steps:,} steps",
        need,
        "give a smaller problem, or fewer chains or steps",
    )


def layout_seconds(problem: Problem) -> float:
    """An upper estimate of the time to build the arrays of a problem."""
    return problem.num_terms / _TERMS_PER_S
