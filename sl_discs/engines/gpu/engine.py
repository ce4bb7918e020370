"""The engine for GPUs, for quadratic models: a kernel runs a whole interval of steps, with one program per chain.

It runs the same program on the same chains as the reference and targets the same distribution, but its numbers
differ: it uses the reference's keys, but draws from them differently and sums in another order.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from sl_discs.batching import DEVICE_CHAINS, DEVICE_INSTANCES
from sl_discs.engines import compiled
from sl_discs.engines.contract import Batch, Best, Chain, Chains, Engine, Trace, unknown_to
from sl_discs.engines.gpu.call import padded_size, play_all
from sl_discs.engines.gpu.play import STEPS, FusedChain, Instance
from sl_discs.engines.gpu.steps import Adapting
from sl_discs.engines.gpu.target import State
from sl_discs.errors import InputError
from sl_discs.localization.algorithm import Observation
from sl_discs.localization.schedule import Levels
from sl_discs.models.coupling import Dense, Sparse
from sl_discs.models.quadratic import QuadraticField, QuadraticModel
from sl_discs.samplers.base import Sampler
from sl_discs.samplers.single_site import RANDOM


def dense_rows(coupling: Dense | Sparse, size: int):
    """K as rows [G, N, P]; lists are expanded, as a step reads every site anyway."""
    if isinstance(coupling, Dense):
        return _padded(coupling.rows, size)

    def write_out(neighbours, weights):
        num_sites = neighbours.shape[0]
        sites = jnp.arange(num_sites)[:, None]
        rows = jnp.zeros((num_sites, size), weights.dtype)
        # Padding entries refer to the column after the last site, or to no column at all.
        return rows.at[sites, neighbours].add(weights, mode="drop")

    return jax.vmap(write_out)(coupling.neighbours, coupling.weights)


def _padded(array, size: int, fill=0):
    """The array with its last axis padded to `size`."""
    widths = [(0, 0)] * (array.ndim - 1) + [(0, size - array.shape[-1])]
    return jnp.pad(array, widths, constant_values=fill)


def _instances(batch: Batch, size: int) -> Instance:
    params = batch.params
    rows = dense_rows(params.coupling, size)
    return Instance(rows, _padded(params.linear, size), params.scale, _padded(batch.mask, size, False))


def _to_spins(x, size: int):
    return _padded(2.0 * x.astype(jnp.float32) - 1.0, size, -1.0)


def _fused_chains(sampler: Sampler, chains: Chains, size: int) -> FusedChain:
    chain = chains.chain
    field, state, observation = chain.field, chain.sampler, chain.observation
    scale = getattr(state, sampler.adapts) if sampler.adapts else jnp.zeros_like(field.linear)
    return FusedChain(
        State(_to_spins(chain.x, size), _padded(field.coupled.astype(jnp.float32), size), field.linear, field.pairs),
        Adapting(state.steps, scale),
        observation and Observation(*(_padded(leaf, size) for leaf in observation)),
        jnp.asarray(chains.best.value),
        _to_spins(chains.best.x, size),
    )


def _as_chains(sampler: Sampler, before: Chains, fused: FusedChain, logged: Best) -> Chains:
    """The kernel's chains in the form of the reference engine; `logged` holds padded spins."""
    num_sites = before.chain.x.shape[-1]

    def states(spins):
        return (spins[..., :num_sites] > 0).astype(jnp.int8)

    old, state, observation = before.chain.sampler, fused.state, fused.observation
    steps = fused.adapting.steps
    after = old._replace(steps=steps, num_ll_calls=old.num_ll_calls + sampler.calls_a_step * (steps - old.steps))
    if sampler.adapts:
        after = after._replace(**{sampler.adapts: fused.adapting.scale})
    coupled = state.coupled[..., :num_sites].astype(before.chain.field.coupled.dtype)
    field = QuadraticField(coupled, state.linear, state.pairs)
    observation = observation and Observation(*(leaf[..., :num_sites] for leaf in observation))
    return Chains(
        Chain(states(state.spins), field, after, observation),
        Best(fused.best, states(fused.best_spins)),
        Best(logged.value, states(logged.x)),
    )


def _play(sampler: Sampler, way: str, batch: Batch, chains: Chains, levels, level, temperature, done):
    """Runs L intervals of E steps, one kernel per interval; temperature is [L, E, B]."""
    size = padded_size(chains.chain.x.shape[-1])
    instances = _instances(batch, size)

    def interval(carry, temperature):
        fused, logged, level, done = carry
        fused, level, info = play_all(way, sampler, instances, batch.keys, levels, level, temperature.T, done, fused)
        value = fused.state.linear + instances.scale[:, None] * fused.state.pairs
        better = value > logged.value
        logged = Best(
            jnp.where(better, value, logged.value), jnp.where(better[..., None], fused.state.spins, logged.x)
        )
        return (fused, logged, level, done + temperature.shape[0]), Trace(value, info.acceptance, info.hops)

    logged = Best(chains.best_logged.value, _to_spins(chains.best_logged.x, size))
    start = (_fused_chains(sampler, chains, size), logged, level, done)
    (fused, logged, _, _), trace = lax.scan(interval, start, temperature)
    return _as_chains(sampler, chains, fused, logged), trace


@functools.partial(jax.jit, static_argnames=("model", "sampler", "mesh", "way"))
def advance(
    batch: Batch, chains: Chains, levels: Levels | None, level, temperature, done, *, model: QuadraticModel,
    sampler: Sampler, mesh: Mesh, way: str = "triton",
) -> tuple[Chains, Trace]:  # fmt: skip
    """As `reference.advance`; `way` is one of `call.WAYS`, of which all but `triton` are for tests."""
    del model
    if temperature.ndim == 2:
        temperature = jnp.broadcast_to(temperature[..., None], (*temperature.shape, chains.best.value.shape[1]))
    instances, both = PartitionSpec(DEVICE_INSTANCES), PartitionSpec(DEVICE_INSTANCES, DEVICE_CHAINS)
    all_alike, of_chains = PartitionSpec(), PartitionSpec(None, None, DEVICE_CHAINS)
    return jax.shard_map(
        functools.partial(_play, sampler, way),
        mesh=mesh,
        in_specs=(Batch._make((instances, instances, both)), both, all_alike, all_alike, of_chains, all_alike),
        out_specs=(both, PartitionSpec(None, *both)),
        check_vma=False,
    )(batch, chains, levels, level, temperature, done)


class Gpu(Engine):
    """Runs the samplers of `play.STEPS` in one of `call.WAYS`; all but `triton` are for tests."""

    name = "gpu"

    def __init__(self, way: str = "triton"):
        self.way = way

    def obstacle(self, sampler):
        """A platform other than GPUs, or a sampler that the kernel does not support."""
        if self.way == "triton" and jax.default_backend() != "gpu":
            return f"it runs on GPUs, and JAX on {jax.default_backend()}"
        if getattr(sampler, "scan", RANDOM) != RANDOM:
            return f"it only supports scan {RANDOM}"
        return unknown_to(STEPS, sampler)

    def prepare(self, model, sampler, batch, program, mesh, threads):
        """As the reference engine; exchanges and recorded states are not supported."""
        del threads
        if program.ladder > 1 or program.keeps_states:
            raise InputError("engine gpu does not exchange or record states of chains; choose reference or cpu")
        return compiled.calls_of(advance, batch, program, model=model, sampler=sampler, mesh=mesh, way=self.way)
