"""DISCS's own model and compiled step on given graphs, called as its experiment calls them: for measurements."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from ml_collections import config_dict

from sl_discs.instances.dataset import Dataset, write_discs
from sl_discs.models.kinds import graph_kind


class Experiment(NamedTuple):
    """DISCS's config, its model, and the parameters of all graphs, leaves [G, ...], at temperature 0.5."""

    config: config_dict.ConfigDict
    model: Any
    params: dict[str, Any]


def upstream_experiment(dataset: Dataset, num_chains: int, chain_length: int) -> Experiment:
    """DISCS's experiment on the graphs of a dataset, which it reads from a temporary folder."""
    problem, count = dataset.problem, len(dataset.graphs)
    # DISCS reads any graphs in this family's format and determines their sizes itself.
    graph_type, cfg_str = graph_kind(problem).discs_family  # type: ignore[misc]  # DISCS poses this problem
    name = f"{problem}/{graph_type}" + (f"/{cfg_str}" if cfg_str != "_" else "")
    carried = dataclasses.replace(dataset, name=name, index=list(range(count)))
    config = importlib.import_module("discs.common.configs").get_config()
    config.model.update(importlib.import_module(f"discs.models.configs.{problem}_config").get_config())
    config.model.graph_type, config.model.cfg_str = graph_type, cfg_str
    family = importlib.import_module(f"discs.models.configs.{problem}.{graph_type}")
    config.model.update(family.get_model_config(cfg_str))
    config.model.update({"max_num_nodes": 0, "max_num_edges": 0, "num_instances": 0, "num_models": count})
    combinatorial = importlib.import_module("discs.experiment.configs.co_experiment")
    config.experiment.update(combinatorial.get_co_default_config())
    config.experiment.update({"num_models": count, "batch_size": num_chains, "chain_length": chain_length})
    with tempfile.TemporaryDirectory() as folder:
        write_discs(carried, Path(folder))
        config.model.data_root = folder
        model = importlib.import_module(f"discs.models.{problem}").build_model(config)
        instances = [params for _, params, _ in model.make_init_params(None)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *instances)
    return Experiment(config, model, stacked | {"temperature": jnp.full(count, 0.5)})


class StepLoop:
    """A sampler's compiled step, jitted and mapped over graphs, with the state of its chains."""

    def __init__(self, name: str, experiment: Experiment):
        config = experiment.config.copy_and_resolve_references()
        config.sampler.update(importlib.import_module(f"discs.samplers.configs.{name}_config").get_config())
        sampler = importlib.import_module(f"discs.samplers.{name}").build_sampler(config)
        self._step = jax.jit(jax.vmap(functools.partial(sampler.step, model=experiment.model)))
        self._params, self._number = experiment.params, 0
        graphs, chains = config.experiment.num_models, config.experiment.batch_size
        self._state = jax.vmap(sampler.make_init_state)(jax.random.split(jax.random.PRNGKey(0), graphs))
        x = experiment.model.get_init_samples(jax.random.PRNGKey(1), graphs * chains)
        self._x = x.reshape(graphs, chains, *config.model.shape)

    def play(self, steps: int) -> float:
        """Runs this many steps of all chains; returns the seconds until all results are computed."""
        graphs = self._x.shape[0]
        keys = [jax.random.split(jax.random.PRNGKey(self._number + k), graphs) for k in range(steps)]
        jax.block_until_ready(keys)
        begin = time.perf_counter()
        for key in keys:
            self._x, self._state, _ = self._step(
                rng=key, x=self._x, model_param=self._params, state=self._state, x_mask=self._params["mask"]
            )
        jax.block_until_ready((self._x, self._state))
        self._number += steps
        return time.perf_counter() - begin
