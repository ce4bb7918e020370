"""Problems and samplers of sl_discs in DISCS's calling convention."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Num
from ml_collections import config_dict

from sl_discs.discs_plugin.base_sampler import States
from sl_discs.discs_plugin.localized_sampler import check_batch, unobserved, with_observation
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.algorithm import Localized
from sl_discs.localization.schedule import Localization
from sl_discs.models.base import Target, TargetModel
from sl_discs.models.functions import GradientModel, ValueAndGrad
from sl_discs.models.quadratic import QuadraticModel, quadratic_params, sparse_is_cheaper
from sl_discs.models.sites import Sites
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.problems.kind import PENALTY
from sl_discs.samplers.base import Sampler


class OwnProblem:
    """MIS, MaxCut or MaxClique on a dataset of sl_discs, in DISCS's calling convention.

    As DISCS's models do, it writes the number of sites into `config.model`; it also sets
    `config.experiment.num_models` to the number of instances of a batch, so that no batch is padded with dummies.

    Args:
      problem: the name of one that DISCS poses.
      config: DISCS's whole config, whose `model` has the fields of `problem_config`.

    Raises:
      InputError: a dataset that is neither present nor random, or a penalty out of range.
    """

    def __init__(self, problem: str, config: config_dict.ConfigDict):
        fields = config.model
        dataset = load_dataset(
            problem,
            fields.graph_type,
            fields.cfg_str,
            fields.data_root or None,
            num_instances=fields.num_instances,
            data_seed=fields.data_seed,
        )
        self._graphs, self._kind, self._penalty = dataset.graphs, graph_kind(problem), float(fields.penalty)
        self._num_sites = max(graph.num_nodes for graph in dataset.graphs)
        self._model = QuadraticModel(self._num_sites)
        degree = max(self._kind.terms(graph, self._penalty).max_degree() for graph in dataset.graphs)
        self._degree = degree if sparse_is_cheaper(degree, self._num_sites) else None
        self._per_batch = min(fields.instances_per_batch, len(dataset.graphs))
        while len(dataset.graphs) % self._per_batch:
            self._per_batch -= 1
        with config.unlocked():
            config.model.shape = (self._num_sites,)
            config.model.max_num_nodes = self._num_sites
            config.experiment.num_models = self._per_batch
        self._batches = self._iter_batches()

    def _iter_batches(self) -> Iterator[list[tuple[int, dict[str, Any], float]]]:
        for start in range(0, len(self._graphs), self._per_batch):
            yield [self._instance(k) for k in range(start, start + self._per_batch)]

    def _instance(self, position: int) -> tuple[int, dict[str, Any], float]:
        graph = self._graphs[position]
        terms = self._kind.terms(graph, self._penalty)
        quadratic = quadratic_params(terms, self._num_sites, self._degree)
        mask = np.arange(self._num_sites) < graph.num_nodes
        params = jax.tree.map(jnp.asarray, {"quadratic": quadratic, "mask": mask})
        reference = graph.reference if self._kind.in_percent and graph.reference else 1.0
        return position, params, reference

    def make_init_params(self, rng: Array) -> list[tuple[int, dict[str, Any], float]] | None:
        """Position, parameters and reference objective of each instance of the next batch; None after the last."""
        del rng
        return next(self._batches, None)

    def get_init_samples(self, rng: Array, num_samples: int) -> Int[Array, "M N"]:
        """States with independent fair sites."""
        return jax.random.bernoulli(rng, 0.5, (num_samples, self._num_sites)).astype(jnp.int32)

    def _target(self, params: dict[str, Any]) -> Target:
        return Target(self._model, params["quadratic"], params["temperature"], params["mask"])

    def forward(self, params: dict[str, Any], x: Num[Array, "B N"]) -> Float[Array, "B"]:
        """f/temperature of each state; sites outside the mask do not count."""
        return TargetModel().forward(self._target(params), x)

    def evaluate(self, params: dict[str, Any], x: Num[Array, "B N"]) -> Float[Array, "B"]:
        """f of each state."""
        return TargetModel().forward(self._model.target(params["quadratic"], params["mask"]), x)

    def get_value_and_grad(
        self, params: dict[str, Any], x: Num[Array, "B N"]
    ) -> tuple[Float[Array, "B"], Float[Array, "B N"]]:
        """f/temperature, and its gradient, which gives exact gains."""
        return TargetModel().get_value_and_grad(self._target(params), x)


def problem_config(problem: str, name: str) -> config_dict.ConfigDict:
    """Model config of a problem under DISCS's name for it.

    Fields: `graph_type`, `cfg_str` and `data_root` as in DISCS (an empty data_root generates random families),
    `penalty`, `num_instances` (None: all), `data_seed`, `instances_per_batch`.
    """
    graph_type, cfg_str = graph_kind(problem).discs_family  # type: ignore[misc]  # DISCS poses this problem
    return config_dict.ConfigDict(
        {
            "name": name,
            "graph_type": graph_type,
            "cfg_str": cfg_str,
            "data_root": "",
            "penalty": PENALTY,
            "num_instances": config_dict.placeholder(int),
            "data_seed": 0,
            "instances_per_batch": 32,
            "num_categories": 2,
            "save_dir_name": name,
        }
    )


def graph_config() -> config_dict.ConfigDict:
    """The fields that DISCS expects in a family's config; `OwnProblem` sets the rest once it has the instances."""
    return config_dict.ConfigDict({"num_models": 1, "num_categories": 2, "shape": (0,)})


# Samplers of sl_discs on models of DISCS.


@dataclasses.dataclass(frozen=True)
class BatchModel(GradientModel):
    """A model for single states, made from one that gives values and gradients of batches in coordinates."""

    inner: Any
    states: States

    @property
    def num_sites(self) -> int:  # type: ignore[override]  # a field of other models
        """Number of sites of a flattened state."""
        return math.prod(self.states.shape)

    @property
    def sites(self) -> Sites:  # type: ignore[override]  # a field of other models
        """Those of a flattened state."""
        return self.states.sites

    def init(self, params, x):
        z = self.states.coordinates(x.reshape(1, *self.states.shape)).astype(jnp.float32)
        value, grad = self.inner.get_value_and_grad(params, z)
        grad = grad.reshape(self.sites.shape(self.num_sites))
        return ValueAndGrad(value[0].astype(jnp.float32), grad.astype(jnp.float32))


class OwnSampler:
    """A sampler of sl_discs in DISCS's calling convention, localized or not; every chain adapts on its own.

    Its state is a dictionary of num_ll_calls, steps and `chains`, the sampler's own states, leaves [B, ...].

    Args:
      sampler: the base sampler; for more than two values, one that takes them (`Sampler.several_values`).
      num_chains: B, on one device.
      states: of its batches.
      localization: around it; None: the base sampler itself.
      chain_length: number of MCMC steps in all, of localization.

    Raises:
      InputError: a hyperparameter of localization out of its range.
    """

    def __init__(
        self,
        sampler: Sampler,
        num_chains: int,
        states: States,
        localization: Localization | None = None,
        chain_length: int = 0,
    ):
        self._states, self._num_chains, self._localization = states, num_chains, localization
        self._base = self._sampler = sampler
        if localization is not None:
            self._sampler = Localized(sampler, localization.levels(chain_length))

    def make_init_state(self, rng: Array) -> dict[str, Any]:
        """Counters at zero, and the sampler's first state for each chain."""
        del rng
        one = self._base.init_state(math.prod(self._states.shape))
        if self._localization is not None:
            one = unobserved(one, self._states.sites.shape(math.prod(self._states.shape)))
        chains = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self._num_chains, *leaf.shape)), one)
        return {"num_ll_calls": jnp.int32(0), "steps": jnp.int32(0), "chains": chains}

    def step(
        self,
        model: Any,
        rng: Array,
        x: Int[Array, "B *shape"],
        model_param: Any,
        state: dict[str, Any],
        x_mask: Bool[Array, "*shape"] | None = None,
    ) -> tuple[Int[Array, "B *shape"], dict[str, Any], Float[Array, ""]]:
        """One step of each chain: `Sampler.step` on flat states."""
        chains = state["chains"]
        if self._localization is not None:
            check_batch(x, self._num_chains, self._states)
            chains = with_observation(rng, chains, self._localization.initial_noise())
        flat, mask = x.reshape(x.shape[0], -1), None if x_mask is None else x_mask.reshape(-1)
        own = BatchModel(model, self._states)
        flat, chains, acceptance = self._sampler.step(own, rng, flat, model_param, chains, mask)
        calls = state["num_ll_calls"] + self._base.calls_a_step
        new_state = {"num_ll_calls": calls, "steps": state["steps"] + 1, "chains": chains}
        return flat.reshape(x.shape), new_state, acceptance

    def final_sample(self, state: dict[str, Any]) -> Int[Array, "B *shape"]:
        """Returns the states whose spins are closest to the observations at the end of a run."""
        return self._states.decode(state["chains"].y.reshape(-1, *self._states.spin_shape))
