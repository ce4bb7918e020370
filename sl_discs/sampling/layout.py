"""What is sampled, as methods need it: the terms of a model, quadratic or not, and the arrays of chains on it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from sl_discs.engines.base import Batch
from sl_discs.experiment.batches import Shape, build_batch, build_density_batch
from sl_discs.instances.potts import PottsForm
from sl_discs.models.base import Model
from sl_discs.models.functions import Density
from sl_discs.models.potts import PottsTerms, potts_terms
from sl_discs.models.quadratic import Coefficients
from sl_discs.problems import Problem
from sl_discs.problems.density import LogDensity
from sl_discs.samplers.base import Sampler

Terms = Coefficients | PottsTerms | Density


def terms_of(problem: Problem | LogDensity) -> Terms:
    """The terms of the function that is maximised."""
    if isinstance(problem, Problem) and isinstance(problem.source, PottsForm):
        return potts_terms(problem.source)
    return problem.terms()


def counts_of(terms: Terms) -> Int[np.ndarray, "N"]:
    """The number of values of each variable."""
    return np.array(terms.num_values) if isinstance(terms, PottsTerms) else np.full(terms.num_sites, 2)


def log_num_states(terms: Terms) -> float:
    """The logarithm of the number of states, which is log Z at infinite temperature."""
    return float(np.log(counts_of(terms)).sum())


def reach_of(terms: Terms) -> float:
    """The largest absolute value that f can have beside its constant, from above; 0 if nothing is known."""
    with np.errstate(over="ignore"):
        if isinstance(terms, PottsTerms):
            fields = np.abs(np.where(terms.exists, terms.fields, 0.0)).max(axis=1).sum()
            return float(fields + np.abs(terms.scale * terms.couplings).sum())
        if isinstance(terms, Coefficients):
            pairs = np.abs(terms.scale * (terms.weights - terms.background)).sum()
            background = abs(terms.scale * terms.background) * terms.num_sites * (terms.num_sites - 1) / 2
            return float(np.abs(terms.linear).sum() + pairs + background)
    return 0.0


def lay_out(terms: Terms, sampler: Sampler, names: Sequence[int], shape: Shape, seed: int) -> tuple[Model, Batch]:
    """The model and the batch of instances that are all alike.

    Args:
      terms: of the model.
      sampler: that will be run.
      names: of the instances, which name their keys.
      shape: of the batch.
      seed: of the chains.
    """
    if isinstance(terms, Density):
        return build_density_batch(terms, sampler, names, shape, seed)
    return build_batch([terms] * len(names), names, shape, seed)
