"""Tests whether two engines agree, in means over chains, on graphs that are too large for the oracle."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sl_discs.engines.contract import Engine, Program, Trace, init_chains
from sl_discs.engines.registry import get_engine
from sl_discs.experiment.packing import build_batch, plan
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.schedule import Localization
from sl_discs.models.kinds import graph_kind
from sl_discs.samplers.base import Sampler
from sl_discs.testing.engines import play_program
from sl_discs.testing.single_step import Disagreement

# Standard errors of a difference of means that a check allows.
_FAR = 5.0


def check_agreement(
    engine: Engine, sampler: Sampler, cfg_str: str = "r-ba-4-n-64-75", num_chains: int = 48, num_steps: int = 80
) -> None:
    """Checks mean value, acceptance and hops of annealed, localized chains against the reference engine.

    Args:
      engine: engine to compare with the reference.
      sampler: a sampler that the engine supports.
      cfg_str: family of MaxCut graphs, of which two are run.
      num_chains: chains of each graph.
      num_steps: steps of each chain, an even number.

    Raises:
      Disagreement: a mean differs by more than five standard errors.
    """
    dataset = load_dataset("maxcut", "ba", cfg_str, None, num_instances=2)
    terms = [graph_kind("maxcut").terms(graph, 1.0) for graph in dataset.graphs]
    [pack] = plan(terms, 2, num_chains)
    model, batch = build_batch(terms, dataset.index, pack.shape, 0)
    plan_of_levels = Localization(K=6, sigma=2.0, n_min=3)
    temperature = np.linspace(2.0, 0.5, num_steps).astype(np.float32)
    program = Program(temperature, plan_of_levels.levels(num_steps))
    x = jnp.zeros((2, num_chains, model.num_sites), jnp.int8)

    @jax.jit
    def begin(batch):
        return init_chains(model, sampler, batch, x, plan_of_levels.initial_noise())

    def traced(one: Engine) -> Trace:
        # Copies, since an engine may reuse the buffers.
        chains = jax.tree.map(jnp.array, begin(batch))
        return jax.tree.map(np.asarray, play_program(one, model, sampler, batch, chains, program, intervals=2)[1])

    found, wanted = traced(engine), traced(get_engine("reference"))
    for name in ("value", "acceptance", "hops"):
        one, other = getattr(found, name), getattr(wanted, name)
        error = np.sqrt((np.var(one, axis=2) + np.var(other, axis=2)) / num_chains)
        difference = np.abs(one.mean(axis=2) - other.mean(axis=2))
        # Negated, so that numbers that are not finite fail as well.
        if not (difference <= _FAR * error + 1e-6 * np.abs(other).mean()).all():
            worst = np.max(difference / np.maximum(error, 1e-12))
            raise Disagreement(f"mean {name} is {worst:.1f} standard errors from that of the reference")
