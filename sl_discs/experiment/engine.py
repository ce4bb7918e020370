"""The reference engine: plain JAX, any model, any sampler, any device.

A run is a program, arrays with one entry a step, that an engine plays on a batch of instances x chains, which are
spread over the devices of a mesh. No device waits for another, unless the chains of an instance share adaptation.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, Int8

from sl_discs.batching import DEVICE_CHAINS, DEVICE_INSTANCES, over_chains, over_instances
from sl_discs.experiment.in_turn import group_size, play_in_turn
from sl_discs.localization.observation import MOST_COUNTED
from sl_discs.localization.transition import (
    Chain,
    ProgramStep,
    StepKeys,
    begin_level,
    end_level,
    fold_step,
    init_chain,
    transition,
)
from sl_discs.models.base import Model, Params
from sl_discs.samplers.base import Sampler


@functools.cache
def compiler_options() -> dict[str, str | bool | int]:
    """XLA options with which neither numbers nor speed of an instance depend on what is played beside it.

    On CPUs XLA hands some sums to a library whose order of summation depends on the whole array's shape. XLA would
    also cut some kernels into a part for each core, and arrays would wander between the cores' caches; each core has
    a device and chains of its own here. Vectors are as long as the processor has them: XLA would keep to 256 bits.
    On GPUs of several hosts XLA would let the hosts share the search for the fastest kernels, waiting for each other;
    hosts here play different shapes. What a version of XLA does not know is left out.
    """
    if jax.default_backend() == "cpu":
        options = {
            "xla_cpu_experimental_ynn_fusion_type": "",
            "xla_disable_hlo_passes": "cpu-parallel-task-assigner",
            "xla_cpu_prefer_vector_width": 512,
        }
    elif jax.process_count() > 1:
        options = {"xla_gpu_shard_autotuning": False}
    else:
        options = {}
    return {name: value for name, value in options.items() if _compiles_with({name: value})}


def _compiles_with(options: dict[str, str | bool]) -> bool:
    try:
        jax.jit(jnp.negative).lower(jnp.float32(0)).compile(compiler_options=options)
    except (RuntimeError, ValueError):
        return False
    return True


class Best(NamedTuple):
    """The best state of a chain so far and its value f, which counts conflicts against it."""

    value: Float[Array, "*G B"]
    x: Int8[Array, "*G B N"]


class Chains(NamedTuple):
    """Everything that a batch of chains carries; leaves have leading axes [G, B].

    Attributes:
      chain: the chains.
      best: best over every step.
      best_logged: best over the logged steps alone, DISCS's figure.
    """

    chain: Chain
    best: Best
    best_logged: Best


class Trace(NamedTuple):
    """What is recorded at each of L logged steps, with axes [L, G, B].

    Attributes:
      value: f at the logged step.
      acceptance: mean acceptance probability since the previous logged step.
      hops: mean number of sites changed a step, likewise.
    """

    value: Float[Array, "L G B"]
    acceptance: Float[Array, "L G B"]
    hops: Float[Array, "L G B"]


class Batch(NamedTuple):
    """Instances of one padded size.

    Attributes:
      params: the model's parameters, leaves [G, ...].
      mask: [G, N] the sites that exist.
      keys: [G, B] keys of the chains.
    """

    params: Params
    mask: Bool[Array, "G N"]
    keys: StepKeys


def _keep_better(best: Best, value, x) -> Best:
    better = value > best.value
    return Best(jnp.where(better, value, best.value), jnp.where(better, x, best.x))


def _row(rows: ProgramStep, place) -> ProgramStep:
    return jax.tree.map(lambda leaf: leaf[place], rows)


def _ends_of_levels(rows: ProgramStep) -> Int[Array, "E"]:
    """For each of E steps the place up to which they can be played as one `Level` from there."""
    length = rows.temperature.shape[0]
    if rows.localization is None:
        return jnp.full(length, length)
    places = jnp.arange(length)
    ends = lax.cummin(jnp.where(rows.localization.boundary, places + 1, length), reverse=True)
    return jnp.minimum(ends, places + MOST_COUNTED)


def init_chains(model: Model, sampler: Sampler, batch: Batch, x, noise: float | None) -> Chains:
    """The chains before step 1, at states x [G, B, N]; no state counts as met yet."""

    def one(keys, x, params):
        chain = init_chain(keys, x, model, params, sampler, noise)
        none = Best(jnp.float32(-jnp.inf), x)
        return Chains(chain, none, none)

    return over_instances(over_chains(one, (0, 0, None)))(batch.keys, x, batch.params)


def _play(model: Model, sampler: Sampler, batch: Batch, chains: Chains, program: ProgramStep, first_step):
    """Plays program [L, E]: L logged intervals of E steps, of which the first is number `first_step`."""

    begin_all = over_instances(over_chains(begin_level, (0, None)), (0, None))

    def one_step(keys, params, mask, state: Chains, level, row: ProgramStep, number):
        keys = fold_step(keys, number)
        chain, level, info = transition(keys, model, params, sampler, state.chain, level, row, mask)
        value = model.value(params, chain.x, chain.field)
        return state._replace(chain=chain, best=_keep_better(state.best, value, chain.x)), level, info

    step_all = over_instances(over_chains(one_step, (0, None, None, 0, 0, None, None)), (0, 0, 0, 0, 0, None, None))

    def end_one(keys, state: Chains, level, row: ProgramStep, number):
        return state._replace(chain=end_level(fold_step(keys, number), state.chain, level, row))

    end_all = over_instances(over_chains(end_one, (0, 0, 0, None, None)), (0, 0, 0, None, None))

    def log_one(params, state: Chains):
        value = model.value(params, state.chain.x, state.chain.field)
        return state._replace(best_logged=_keep_better(state.best_logged, value, state.chain.x)), value

    log_all = over_instances(over_chains(log_one, (None, 0)))

    def interval(carry, rows: ProgramStep):
        """The steps of a logged interval, level by level."""
        chains, first = carry
        length = rows.temperature.shape[0]
        ends = _ends_of_levels(rows)

        def play_level(carry):
            begin, chains, *sums = carry
            level = begin_all(chains.chain, _row(rows, begin))

            def step(place, carry):
                chains, level, acceptance, hops = carry
                row = _row(rows, place)
                chains, level, info = step_all(
                    batch.keys, batch.params, batch.mask, chains, level, row, first + place
                )
                return chains, level, acceptance + info.acceptance, hops + info.hops

            end = ends[begin]
            chains, level, *sums = lax.fori_loop(begin, end, step, (chains, level, *sums))
            return end, end_all(batch.keys, chains, level, _row(rows, end - 1), first + end - 1), *sums

        zero = jnp.zeros(batch.keys.mcmc.shape[:-1], jnp.float32)
        start = jnp.int32(0), chains, zero, zero
        _, chains, acceptance, hops = lax.while_loop(lambda carry: carry[0] < length, play_level, start)
        chains, value = log_all(batch.params, chains)
        return (chains, first + length), Trace(value, acceptance / length, hops / length)

    (chains, _), trace = lax.scan(interval, (chains, first_step), program)
    return chains, trace


@functools.partial(jax.jit, static_argnames=("model", "sampler", "mesh"), donate_argnames="chains")
def advance(
    model: Model,
    sampler: Sampler,
    batch: Batch,
    chains: Chains,
    program: ProgramStep,
    first_step,
    *,
    mesh: Mesh,
) -> tuple[Chains, Trace]:
    """Plays a slice of a program on a batch of chains.

    Args:
      model: the model of f (hashable, static).
      sampler: the base sampler (hashable, static); localization is in the program and the chains.
      batch: G instances of B chains each, multiples of the mesh's parts.
      chains: the chains before the slice; the buffers are donated.
      program: leaves [L, E]: L intervals of E steps each, every interval ending in a logged step.
      first_step: number of the slice's first step, from 1; keys are folded from it.
      mesh: of `experiment.mesh`, whose parts divide instances and chains.

    Returns:
      the chains after the slice, and what was recorded at its L logged steps.
    """
    instances, both = PartitionSpec(DEVICE_INSTANCES), PartitionSpec(DEVICE_INSTANCES, DEVICE_CHAINS)

    def play_device(batch, chains, program, first_step):
        num_instances, num_chains, num_sites = chains.best.x.shape
        size = num_instances
        if mesh.devices.flat[0].platform == "cpu":
            size = group_size(num_instances, num_chains, num_sites, sampler.sites_together)
        return play_in_turn(
            lambda batch, chains: _play(model, sampler, batch, chains, program, first_step), size, batch, chains
        )

    play = jax.shard_map(
        play_device,
        mesh=mesh,
        in_specs=(Batch(instances, instances, both), both, PartitionSpec(), PartitionSpec()),
        out_specs=(both, PartitionSpec(None, *both)),
        check_vma=False,
    )
    return play(batch, chains, program, first_step)
