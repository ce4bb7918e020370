"""Runs that draw from a distribution, one of DISCS's sampling experiments, at one temperature: what
their chains are worth as draws, by DISCS's definition and by that of `sl_discs.sample`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64, Int8, Num

from sl_discs.chains.chains import Chains
from sl_discs.experiment.record import Spread
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.instances.graph import Dataset, Graph
from sl_discs.localization.method import Method
from sl_discs.problems.graph_kind import GraphKind
from sl_discs.problems.kind import Evaluated
from sl_discs.support.errors import InputError

# The models of DISCS's sampling experiments, and whether their log-densities are quadratic in zeros
# and ones, if all sites have two values.
DISTRIBUTIONS = {
    "ising": True,
    "bernoulli": True,
    "fhmm": True,
    "potts": False,
    "categorical": False,
    "rbm": False,
}

# Twice the smallest number of draws of a chain for which diagnostics are meaningful.
_LEAST_STEPS = 8


def _is_quadratic(model: Mapping[str, Any]) -> bool:
    return DISTRIBUTIONS[model["name"]] and model.get("num_categories", 2) == 2


def settings_of_draws(experiment: Mapping[str, Any], model: Mapping[str, Any]) -> Settings:
    """Returns the settings of a run on a model of DISCS: each step counts, at one temperature, and
    only `reference` runs functions that are not quadratic.
    """
    # DISCS's base config has log_every_steps=1000, and records each step all the same.
    settings = settings_from({"t_schedule": "constant", **experiment, "log_every_steps": 1})
    if settings.t_schedule != "constant":
        raise InputError(
            f"config.experiment.t_schedule is {settings.t_schedule!r}, and draws from "
            f"{model['name']} need one temperature; give 'constant'"
        )
    if settings.first_instance or (settings.num_instances or 1) > 1:
        raise InputError(
            "config.experiment.num_instances and first_instance choose among the instances of a "
            f"dataset, and a model {model['name']} is a single one; leave them out, or give "
            "another data_seed for other parameters"
        )
    if settings.chain_length < _LEAST_STEPS:
        raise InputError(
            f"config.experiment.chain_length is {settings.chain_length}, and the second half of "
            f"the steps are draws; give at least {_LEAST_STEPS}"
        )
    if _is_quadratic(model):
        return settings
    if settings.engine not in ("auto", "reference"):
        raise InputError(
            f"engine is {settings.engine!r}, which needs a log-density that is quadratic in zeros "
            f"and ones, unlike {model['name']}; choose 'auto' or 'reference'"
        )
    return dataclasses.replace(settings, engine="reference")


@dataclasses.dataclass(frozen=True)
class Distribution(Graph):
    """A distribution of the values of nodes, in the place of edges.

    Attributes:
      terms: of its log-density.
      params: of the model of DISCS.
    """

    terms: Any = None
    params: Any = None

    def content(self) -> bytes:
        """Returns the parameters as bytes."""
        return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(self.params))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistributionKind(GraphKind):
    """A log-density in the place of a problem on a graph; all its states are feasible."""

    def accepts(self, source):
        return isinstance(source, Distribution)

    def evaluator(self, source):
        return lambda states: Evaluated(
            source.terms.values(states), np.ones(len(states), bool), states
        )

    def best_evaluator(self, source):
        def evaluate_best(states):
            found = self.evaluator(source)(states)
            best = int(np.argmax(found.values))
            return Evaluated(*(leaf[best : best + 1] for leaf in found))

        return evaluate_best


_KIND = DistributionKind(
    name="distribution",
    problem="distribution of DISCS",
    unit="log-density",
    recounted="by its coefficients, or by DISCS's function",
    model=lambda source, penalty: source.terms,
    penalty=None,
)


def load_distribution(model: Mapping[str, Any], seed: int, methods: Iterable[Method]) -> Dataset:
    """Returns a model of DISCS as the only instance of a dataset.

    Args:
      model: fields of DISCS's model config, `name` among them.
      seed: of its parameters, 0 in DISCS's experiments.
      methods: that are to run on it.

    Raises:
      InputError: there is no DISCS, it cannot build the model, or a sampler cannot run on it.
    """
    # Imported here, as other runs do without them.
    from sl_discs.discs_plugin.densities import build_discs_model
    from sl_discs.discs_plugin.modules import check_own

    built = build_discs_model(model, seed, _is_quadratic(model))
    shape = built.states.shape
    for method in methods:
        check_own(method.name, method.sampler, model["name"], built.states)
    name = f"{model['name']}/{'x'.join(map(str, shape))}"
    no_edges = np.zeros((0, 2), np.int32)
    distribution = Distribution(
        name, math.prod(shape), no_edges, None, terms=built.terms, params=built.params
    )
    detail = (
        f"{math.prod(shape)} sites of {built.states.num_values} values, parameters of seed {seed}"
    )
    kind = _KIND.register().name
    return Dataset(name, kind, "DISCS", detail, [distribution], [0], 1, built.origin)


class MeasuredChains(Chains):
    """Chains of one instance that record, in place of states, their distances to one state.

    A distance is the sum of absolute differences of values, as in DISCS.
    """

    def __init__(self, origin: Int8[np.ndarray, "N"], *arguments):
        self._origin = origin
        super().__init__(*arguments)

    def prepare(self, program, done):
        super().prepare(program._replace(keeps_states=True), done)

    def advance(self, intervals, every):
        trace = super().advance(intervals, every)
        states = np.asarray(trace.states)[..., : len(self._origin)]
        return trace._replace(states=np.abs(states - self._origin).sum(axis=-1))


def effective_draws(
    distances: Num[np.ndarray, "T B"],
    values: Float64[np.ndarray, "T B"],
    seconds: float,
    final: Float64[np.ndarray, "B"] | None = None,
) -> dict[str, float | None]:
    """Returns how many independent draws T steps of B chains are worth, by the names of numbers;
    None where all values of f agree, which tells nothing.

    Localized chains have another target in each level: each gives one draw a run, the final one.

    Args:
      distances: of the states from one state, after each step.
      values: of f, likewise.
      seconds: that the T steps took.
      final: f of the final samples of localized chains, of which as many steps were made before;
        None: the chains are not localized.
    """
    # Imported here, as other runs do without them.
    from sl_discs.discs_plugin.compat import effective_sample_size
    from sl_discs.sampling.diagnostics import diagnose

    steps, chains = values.shape
    each = np.asarray(effective_sample_size(jnp.asarray(distances, jnp.float32)), np.float64)
    # A chain that stands still counts 1.
    of_chains = Spread.of(np.nan_to_num(each, nan=1.0))
    # Rounding errors of its running sum give each chain another f of the same state: ranks would
    # tell them apart.
    unit = max(values.std() / 1_000, 1e-6 * np.abs(values).max()) or 1.0
    rounded = np.round(values / unit)
    found = diagnose("f", rounded.T)
    effective = found.ess_bulk
    used = 1
    if final is not None:
        values = rounded = final
        effective = float(chains)
        used = 2
    of_f: dict[str, float | None] = {
        "ess": effective,
        "ess_a_step": effective / (used * steps * chains),
        "ess_a_second": effective / (used * seconds),
        "r_hat": found.r_hat,
        "f_mean_se": float(values.std() / np.sqrt(effective)),
    }
    if np.ptp(rounded) == 0:
        of_f = dict.fromkeys(of_f)
    return {
        "discs_ess": of_chains.mean,
        "discs_ess_se": of_chains.se,
        "discs_ess_a_step": of_chains.mean / steps,
        "discs_ess_a_second": of_chains.mean / seconds,
        "f_mean": float(values.mean()),
    } | of_f
