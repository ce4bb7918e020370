"""The reference engine: plain JAX, any model, any sampler, any device, written to be read.

Chains are distributed over the devices of a mesh; those of an instance stay together if they share
their adaptation. No device waits for another.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from sl_discs.engines import compiled
from sl_discs.engines.program import (
    Batch,
    Best,
    ChainStates,
    Engine,
    Trace,
    accept_swaps,
    check_ladder,
    swap,
)
from sl_discs.localization.algorithm import Localized
from sl_discs.localization.schedule import Levels
from sl_discs.models.batching import (
    DEVICE_CHAINS,
    DEVICE_INSTANCES,
    make_mesh,
    over_chains,
    over_instances,
)
from sl_discs.models.keys import StepKeys, fold
from sl_discs.models.model import Model, Target
from sl_discs.samplers.sampler import Info, Sampler

# The number of levels is padded to a multiple of this.
_LEVELS = 1_024


@dataclasses.dataclass(frozen=True)
class Reference(Engine):
    """Runs every sampler on every model."""

    name = "reference"

    def obstacle(self, sampler, num_sites=0):
        return None

    def prepare(self, model, sampler, batch, program):
        """Compiles for each number of intervals and steps on first use."""
        mesh = self.mesh or make_mesh()
        check_ladder(program, batch.keys.mcmc.shape[1], mesh.shape[DEVICE_CHAINS])
        levels = program.levels and _filled(program.levels)

        def play(chains, done, intervals, every):
            rows = program.temperature.rows(done, done + intervals * every)
            num_chains = batch.keys.mcmc.shape[1]
            temperature = rows.reshape(-1, intervals, every)[0]
            if program.temperature.is_constant:
                temperature = np.broadcast_to(
                    np.resize(rows[:, :1], num_chains), (intervals, every, num_chains)
                )
            return compiled.call(
                advance,
                batch,
                chains,
                levels,
                program.field,
                temperature,
                np.int32(done),
                model=model,
                sampler=sampler,
                mesh=mesh,
                ladder=program.ladder,
                keeps_states=program.keeps_states,
            )

        return play


def _filled(levels: Levels) -> Levels:
    """Pads the levels with levels that never begin, so that different numbers of them share
    compiled code.
    """
    width = 0, -len(levels.last) % _LEVELS
    filled = (
        leaf if np.ndim(leaf) == 0 else np.pad(leaf, width, constant_values=1) for leaf in levels
    )
    return Levels(*filled)._replace(
        last=np.pad(levels.last, width, constant_values=np.iinfo(np.int32).max)
    )


def _keep_better(best: Best, value, x) -> Best:
    better = value > best.value
    return Best(jnp.where(better, value, best.value), jnp.where(better, x, best.x))


def _step(
    model: Model,
    sampler: Sampler,
    keys: StepKeys,
    params,
    mask,
    chains: ChainStates,
    field,
    temperature,
    levels,
    done,
):
    """Makes one step of one chain, of which `done` have been run."""
    key = StepKeys(*(fold(key, done + 1) for key in keys))
    target = Target(model, params, temperature, mask)
    if field is not None:
        target = target.tilted(field)
    if levels is None:
        chain, info = sampler.kernel(key.mcmc, target, chains.chain)
    else:
        chain, info = Localized(sampler, levels).kernel(key, target, chains.chain)
    value = model.value(params, chain.x, chain.field)
    return chains._replace(chain=chain, best=_keep_better(chains.best, value, chain.x)), info


def _log(model: Model, params, chains: ChainStates):
    """Makes the record of one chain at a logged step."""
    x = jnp.asarray(chains.chain.x)
    field = chains.chain.field
    value = model.value(params, x, field)
    return chains._replace(best_logged=_keep_better(chains.best_logged, value, x)), value


def _play(
    model: Model,
    sampler: Sampler,
    ladder: int,
    keeps_states: bool,
    batch: Batch,
    chains: ChainStates,
    levels,
    field,
    temperature,
    done,
):
    """Runs L intervals of E steps on all chains of a device; temperature is [L, E] or [L, E, B]."""
    of_chain = 0 if temperature.ndim == 3 else None
    tilted = None if field is None else 0
    step = over_chains(
        functools.partial(_step, model, sampler), (0, None, None, 0, tilted, of_chain, None, None)
    )
    step = over_instances(step, (0, 0, 0, 0, tilted, None, None, None))
    log = over_instances(over_chains(functools.partial(_log, model), (None, 0)))

    def one_step(carry, temperature):
        chains, done, sums = carry
        chains, info = step(
            batch.keys, batch.params, batch.mask, chains, field, temperature, levels, done
        )
        return (chains, done + 1, jax.tree.map(jnp.add, sums, info)), None

    def interval(carry, temperature):
        chains, done = carry
        zero = jnp.zeros(chains.best.value.shape, jnp.float32)
        (chains, done, sums), _ = lax.scan(one_step, (chains, done, Info(zero, zero)), temperature)
        chains, value = log(batch.params, chains)
        steps = temperature.shape[0]
        trace = Trace(value, sums.acceptance / steps, sums.hops / steps)
        if keeps_states:
            trace = trace._replace(states=chains.chain.x[:, ::ladder])
        if ladder > 1:
            swaps = accept_swaps(batch.keys, value, temperature[-1], done, done // steps, ladder)
            trace = trace._replace(swaps=swaps)
            x, field, value = swap((chains.chain.x, chains.chain.field, value), swaps)
            best = over_instances(over_chains(_keep_better))(chains.best, value, x)
            chains = chains._replace(chain=chains.chain._replace(x=x, field=field), best=best)
        return (chains, done), trace

    (chains, _), trace = lax.scan(interval, (chains, done), temperature)
    return chains, trace


@functools.partial(
    jax.jit,
    static_argnames=("model", "sampler", "mesh", "ladder", "keeps_states"),
    donate_argnames="chains",
)
def advance(
    batch: Batch,
    chains: ChainStates,
    levels: Levels | None,
    field,
    temperature,
    done,
    *,
    model: Model,
    sampler: Sampler,
    mesh: Mesh,
    ladder: int = 1,
    keeps_states: bool = False,
) -> tuple[ChainStates, Trace]:
    """Runs a part of a program on a batch of chains.

    Args:
      batch: G instances of B chains each, multiples of the mesh's parts.
      chains: the chains before the call; their buffers are donated.
      levels: of localization, leaves [K]; None without it.
      field: of the program.
      temperature: [L, E], or [L, E, B]: of L intervals of E steps, every interval ending in a
        logged step.
      done: steps done before; keys are folded from the number of a step, from 1.
      model: the model of f.
      sampler: the base sampler.
      mesh: its parts divide instances and ladders of chains.
      ladder: of the program.
      keeps_states: of the program.

    Returns:
      the chains after the call, and the records of the L logged steps.
    """
    instances = PartitionSpec(DEVICE_INSTANCES)
    both = PartitionSpec(DEVICE_INSTANCES, DEVICE_CHAINS)
    all_alike = PartitionSpec()
    of_chains = PartitionSpec(None, None, DEVICE_CHAINS) if temperature.ndim == 3 else all_alike
    play = jax.shard_map(
        functools.partial(_play, model, sampler, ladder, keeps_states),
        mesh=mesh,
        in_specs=(
            Batch._make((instances, instances, both, None)),
            both,
            all_alike,
            both,
            of_chains,
            all_alike,
        ),
        out_specs=(both, PartitionSpec(None, *both)),
        check_vma=False,
    )
    return play(batch, chains, levels, field, temperature, done)
