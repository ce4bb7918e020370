"""Problems whose variables have several values: chains of a Potts model on the reference engine.

There are no reductions for them, and `auto` plays one sampler, `path_auxiliary`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import numpy as np
from jaxtyping import Float64, Int8
from scipy import sparse

from sl_discs.engines.compiled import compile_seconds
from sl_discs.engines.contract import Batch
from sl_discs.engines.registry import get_engine
from sl_discs.errors import InputError
from sl_discs.experiment.mesh import Layout
from sl_discs.experiment.packing import Shape, step_keys
from sl_discs.instances.potts import PottsForm
from sl_discs.models.coupling import Coupling, dense_coupling, sparse_coupling, sparse_is_cheaper
from sl_discs.models.potts import PottsModel, PottsParams
from sl_discs.models.sites import Categories
from sl_discs.problems import Problem
from sl_discs.reductions.presolved import unreduced
from sl_discs.solving.arguments import as_states, check_arguments
from sl_discs.solving.bounds import bound
from sl_discs.solving.fit import check_fit
from sl_discs.solving.playing import play_members
from sl_discs.solving.recipe import AUTO, MOST_STEPS, Recipe, complete_annealing, default_steps
from sl_discs.solving.result import Result
from sl_discs.solving.rounds import Clock
from sl_discs.solving.scale import range_of
from sl_discs.solving.search import Member, first_round
from sl_discs.solving.stage import Stage, check_range

_ENGINE = "reference"
# Turns of a quench, in each of which half of the sites that gain move.
_TURNS = 50
_QUENCHES = 4


def solve_categorical(
    problem: Problem,
    sampler: str,
    *,
    steps: int | None,
    time_limit: float | None,
    chains: int | None,
    initial_states: Any,
    presolve: bool | None,
    engine: str,
    target: float | None,
    callback: Any,
    interrupt: Any,
    progress: bool,
    **others: Any,
) -> Result:
    """As `sl_discs.solve` of a problem with `num_values`; the arguments have been checked.

    Raises:
      InputError: the sampler, the engine or presolve is for variables of two values.
    """
    clock, compiled_before = Clock(), compile_seconds()
    chosen = get_engine(_ENGINE)
    if engine != AUTO and get_engine(engine) is not chosen:
        raise InputError(
            f"engine is {engine!r}, but variables of several values are sampled by {_ENGINE!r}; leave it at 'auto'"
        )
    if presolve:
        raise InputError(f"presolve is {presolve}, but reductions are for variables of two values; leave it out")
    recipe = check_arguments(sampler, engine=_ENGINE, chains=chains, **others)
    if not recipe.method(MOST_STEPS, fit=True).sampler.several_values:
        raise InputError(f"sampler is {sampler!r}, which is for variables of two values")
    form = problem.source
    assert isinstance(form, PottsForm)
    recipe = dataclasses.replace(recipe, annealing=complete_annealing(recipe.annealing, lambda: _temperatures(form)))
    size, growing = problem.num_variables, time_limit is not None and steps is None
    wanted = None if growing else int(steps or default_steps(recipe.sampler, size))
    first, unit = first_round(recipe, chosen, size, wanted)
    states = as_states(problem, initial_states, recipe.chains)
    note = "" if engine != AUTO else "auto: the engine for variables of several values"
    lay_out = functools.partial(CategoricalStage, problem)
    member = Member(problem, lay_out, recipe, chosen, note, first, unit)
    return play_members(
        unreduced(problem), [member], states, clock,
        growing=growing, time_limit=time_limit, target=target, bound=bound(problem), ends_at_bound=sampler == AUTO,
        callback=callback, interrupt=interrupt, progress=progress, warned=False, compiled_before=compiled_before,
    )  # fmt: skip


class CategoricalStage(Stage):
    """Chains of one Potts model, which is maximised: the form, or its negative."""

    def __init__(
        self, problem: Problem, recipe: Recipe, steps: int, states: Int8[np.ndarray, "R N"] | None, *, fit: bool
    ):
        """Lays out chains, with arguments as of `Stage`."""
        form = problem.source
        assert isinstance(form, PottsForm)
        check_range(problem, _largest(form))
        size, values = form.num_variables, max(form.values)
        degree = int(np.bincount(form.pairs.ravel(), minlength=1).max())
        lists = degree if sparse_is_cheaper(degree, size) else None
        self._seed, self._states = recipe.seed, None
        # Every array of a chain has up to q numbers for each site.
        counted = Shape(size * values, 1, recipe.chains, lists, Layout(1, 1))
        check_fit(problem, recipe, steps, get_engine(_ENGINE), counted)
        self._shape = dataclasses.replace(counted, num_sites=size)
        if lists is None:
            coupling: Coupling = dense_coupling(form.pairs, form.couplings, size)
        else:
            coupling = sparse_coupling(form.pairs, form.couplings, size, lists)
        fields = (_sign(form) * form.fields).astype(np.float32)
        params = PottsParams(fields, coupling, np.float32(_sign(form)))
        stacked = jax.tree.map(lambda leaf: jax.numpy.asarray(leaf)[None], params)
        self._model = PottsModel(Categories(form.values))
        mask = jax.numpy.ones((1, size), bool)
        self._batch = Batch(stacked, mask, step_keys([0], self._shape, recipe.seed))
        if states is not None:
            self._states = np.resize(states, (recipe.chains, size))[None]


def _sign(form: PottsForm) -> float:
    return 1.0 if form.maximise else -1.0


def _largest(form: PottsForm) -> float:
    return float(max(np.abs(form.fields).max(), np.abs(form.couplings).max(initial=0)))


def _temperatures(form: PottsForm) -> tuple[float, float]:
    """Of annealing, from the losses at quenched states, as `scale.temperature_range`."""
    rng = np.random.default_rng(0)
    losses = np.concatenate([_losses(form, rng) for _ in range(_QUENCHES)])
    return range_of(losses, _largest(form), form.num_variables)


def _losses(form: PottsForm, rng: np.random.Generator) -> Float64[np.ndarray, "L"]:
    """Of all alternatives at a state that hardly any single move improves."""
    size, exists = form.num_variables, form.exists
    upper = sparse.csr_matrix((form.couplings, tuple(form.pairs.T)), (size, size))
    coupling, sites = upper + upper.T, np.arange(size)
    x = rng.integers(0, form.values)
    for _ in range(_TURNS):
        local = _sign(form) * (form.fields + coupling @ np.eye(exists.shape[1])[x])
        gains = np.where(exists, local - local[sites, x][:, None], -np.inf)
        willing = gains.max(axis=1) > 0
        if not willing.any():
            break
        x = np.where(willing & (rng.random(size) < 0.5), gains.argmax(axis=1), x)
    others = exists & (np.arange(exists.shape[1]) != x[:, None])
    return np.abs(gains[others])
