"""What an engine runs and returns: programs, batches, chains, traces, and swaps of states between
rungs.

All of it consists of arrays, so the numbers of a schedule can change without recompilation.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Collection
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Float32, Int8

from sl_discs.engines import compiled
from sl_discs.localization.algorithm import Localized
from sl_discs.localization.schedule import Levels
from sl_discs.models import keys
from sl_discs.models.batching import AnyArray, over_chains, over_instances
from sl_discs.models.keys import StepKeys, draw_words, word_to_uniform
from sl_discs.models.model import Model, Params
from sl_discs.samplers.registry import registered_name
from sl_discs.samplers.sampler import Chain, Sampler
from sl_discs.support.errors import InputError


class Temperatures(abc.ABC):
    """The temperatures of a program: by step, by chain, or by the clock.

    Attributes:
      is_constant: whether each chain keeps its temperature, so that an engine needs no arrays of T
        steps.
    """

    is_constant: ClassVar[bool] = False

    @abc.abstractmethod
    def rows(self, begin: int, end: int) -> Float32[np.ndarray, "R T"]:
        """Returns the temperatures of the steps `begin` to `end`, counted from 0; chain c has row c
        modulo R.
        """

    def whole(self) -> Float32[np.ndarray, "T"] | None:
        """Returns the temperatures of all steps, if they are the same for all chains and known
        before the run.
        """
        return None


@dataclasses.dataclass(frozen=True)
class ClockTemperatures(Temperatures):
    """Temperatures by step that follow the clock: a program with these is prepared anew for each
    call.

    Attributes:
      schedule: [T], sliced like an array, of which the steps of the next call are used.
    """

    schedule: Any

    def rows(self, begin, end):
        return np.asarray(self.schedule[begin:end], np.float32)[None]


@dataclasses.dataclass(frozen=True)
class StepTemperatures(ClockTemperatures):
    """Temperatures by step, known before the run.

    Attributes:
      schedule: [T].
    """

    def whole(self):
        return np.asarray(self.schedule[:], np.float32)


@dataclasses.dataclass(frozen=True)
class ChainTemperatures(Temperatures):
    """Temperatures by chain, which do not change during a run.

    Attributes:
      values: [B].
    """

    values: Float32[np.ndarray, "B"]
    is_constant: ClassVar[bool] = True

    def rows(self, begin, end):
        """Returns as many rows as the smallest period of the chains' temperatures."""
        values = np.asarray(self.values, np.float32)
        periods = (r for r in range(1, len(values) + 1) if len(values) % r == 0)
        period = next(r for r in periods if (values.reshape(-1, r) == values[:r]).all())
        return np.broadcast_to(values[:period, None], (period, end - begin))


class Program(NamedTuple):
    """The steps that chains run. Nothing in it changes while it is played.

    Attributes:
      temperature: by step, by chain, or by the clock; a temperature may be infinite.
      levels: of localization, leaves [K]; None without it.
      field: [G, B, N] external field h of each chain, whose target is exp(f/temperature + <s, h>);
        None: there is none, as for all programs with levels.
      ladder: R; B is a multiple of it, and chain b has place b % R in ladder b // R. After each
        interval of a call chains in neighbouring places swap their states, see `swap`. Keys, the
        sampler's state, temperatures and best states stay with the place. 1: nothing is swapped.
      keeps_states: whether the trace has the states of the first place of each ladder.
      clusters: the number of coldest places of the ladders 2k and 2k + 1 that swap clusters with
        each other, see `engines.cpu.lanes`: after an interval those of its parity. 0 unless
        `Engine.has_clusters`.
    """

    temperature: Temperatures
    levels: Levels | None
    field: Float32[np.ndarray, "G B N"] | None = None
    ladder: int = 1
    keeps_states: bool = False
    clusters: int = 0


class Batch(NamedTuple):
    """G instances of one padded size.

    Attributes:
      params: the model's parameters, leaves [G, ...].
      mask: [G, N] whether a site exists or is padding.
      keys: [G, B] keys of the chains.
      loaded: what `Engine.load` makes of the instances for all programs that follow.
    """

    params: Params
    mask: Bool[AnyArray, "G N"]
    keys: StepKeys
    loaded: Any = None


class Best(NamedTuple):
    """The best state of a chain so far and its value f, which includes penalties."""

    value: Float[AnyArray, "*G B"]
    x: Int8[AnyArray, "*G B N"]


class ChainStates(NamedTuple):
    """The complete state of a batch of chains; leaves have leading axes [G, B].

    Attributes:
      chain: the chains; their sampler states are `LocalizedState`s if the program has levels.
      best: best over every step; of chains that an engine plays in step, over the ends of sweeps
        and logged steps.
      best_logged: best over the logged steps only, as DISCS counts.
    """

    chain: Chain
    best: Best
    best_logged: Best


class Trace(NamedTuple):
    """The records of L logged steps, with axes [L, G, B].

    Attributes:
      value: f at the logged step, before any swap.
      acceptance: mean acceptance probability since the previous logged step.
      hops: mean number of sites changed per step since the previous logged step.
      states: of the first place of each ladder, before the swaps; None unless the program keeps
        them.
      swaps: whether the chain then swaps its state with the next one; None for ladders of one
        place.
    """

    value: Float[AnyArray, "L G B"]
    acceptance: Float[AnyArray, "L G B"]
    hops: Float[AnyArray, "L G B"]
    states: Int8[AnyArray, "L G ladders N"] | None = None
    swaps: Bool[AnyArray, "L G B"] | None = None


# play(chains, done, intervals, every): the chains after `intervals` times `every` more steps of the
# program, of which `done` have been run, and the records at the end of each interval.
Play = Callable[[ChainStates, int, int, int], tuple[ChainStates, Trace]]


@dataclasses.dataclass(frozen=True)
class Engine(abc.ABC):
    """Runs chains.

    Attributes:
      name: its name in flags and results.
      on_host: whether it takes and returns arrays of the host, and divides the work itself,
        whatever devices JAX has.
      busy_chains: chains that a batch should have at least; 0 where it makes no difference.
      mesh: of devices, whose parts divide instances and chains; None: one device. An engine on the
        host ignores it.
      threads: of an engine on the host; 0 for the number of cores.
      devices: cards of an engine that divides instances among them itself; 0 for all.
    """

    name: ClassVar[str]
    on_host: ClassVar[bool] = False
    busy_chains: ClassVar[int] = 0
    mesh: Mesh | None = None
    threads: int = 0
    devices: int = 0

    @abc.abstractmethod
    def obstacle(self, sampler: Sampler, num_sites: int = 0) -> str | None:
        """Returns why this engine cannot run a sampler here; None if it can.

        `num_sites` is the largest number of sites, 0 where it is not known yet.
        """

    def num_devices(self) -> int:
        """Returns the number of devices that may share the work."""
        return len(jax.local_devices())

    def describe_devices(self) -> str:
        """Returns the number and kind of its devices, such as `2 x cpu`."""
        devices = jax.local_devices()
        return f"{len(devices)} x {devices[0].device_kind}"

    def steps_per_call(self, sampler: Sampler) -> int:
        """Returns about how many steps of a chain one call should run, within which it cannot be
        inspected.
        """
        return 1_000

    def visible_steps(self, sampler: Sampler, length: int) -> int:
        """Returns about how many steps one call should run for the progress of chains of `length`
        steps to be seen.

        It depends on nothing that a resumed run could change.
        """
        return self.steps_per_call(sampler)

    def has_clusters(self, sampler: Sampler, batch: Batch) -> bool:
        """Returns whether ladders of these chains can swap clusters."""
        return False

    def load(self, model: Model, sampler: Sampler, batch: Batch) -> Batch:
        """Returns the batch with its instances in this engine's memory, where several programs find
        them.
        """
        return batch

    @abc.abstractmethod
    def prepare(self, model: Model, sampler: Sampler, batch: Batch, program: Program) -> Play:
        """Returns the function that runs a program on a batch.

        Args:
          model: of f (hashable).
          sampler: the base sampler (hashable), one without an obstacle.
          batch: G instances of B chains.
          program: of the whole run.

        Raises:
          InputError: the engine cannot run such a program, see `check_ladder`.
        """


def loop_obstacle(sampler: Sampler, supported: Collection[type[Sampler]]) -> str | None:
    """Returns why a compiled engine with loops for some classes of samplers cannot run one of them.

    A subclass of a supported class may differ from it.
    """
    if type(sampler) not in supported:
        return f"it only supports {', '.join(map(registered_name, supported))}"
    if getattr(sampler, "balancing_fn_type", "SQRT") != "SQRT":
        return "it only supports balancing_fn_type SQRT"
    if sampler.couples_chains:
        return "its chains are independent: no shared_adaptation, no shared_scale"
    return None


def check_ladder(program: Program, num_chains: int, parts: int = 1) -> None:
    """Checks that ladders are whole, on one device, and not localized, since localized chains have
    different targets.

    Args:
      program: to be run.
      num_chains: B.
      parts: number of parts into which the chains of an instance are divided.

    Raises:
      InputError: a condition does not hold.
    """
    if num_chains % (program.ladder * parts):
        cut = f", divided into {parts} parts for devices," if parts > 1 else ""
        raise InputError(f"{num_chains} chains{cut} do not form whole ladders of {program.ladder}")
    if program.clusters and num_chains % (2 * program.ladder):
        raise InputError(
            f"{num_chains} chains do not form pairs of ladders of {program.ladder}, to swap "
            "clusters"
        )
    if program.ladder > 1 and not (program.levels is None and program.field is None):
        raise InputError(
            "chains with levels or external fields have different targets and cannot swap "
            "states; expected a ladder of 1"
        )


@functools.partial(jax.jit, static_argnames="model")
def _fields(params, x, *, model: Model):
    return over_instances(over_chains(model.init, (None, 0)))(params, x)


@functools.partial(jax.jit, static_argnames=("sampler", "shape"))
def _localized(chain_keys, levels, *, sampler: Sampler, shape: tuple[int, ...]):
    localized = Localized(sampler, levels)
    return jax.vmap(jax.vmap(lambda key: localized.init_state(keys.fold(key, 0), shape)))(
        chain_keys
    )


def init_chains(
    model: Model, sampler: Sampler, batch: Batch, x: Int8[AnyArray, "G B N"], levels: Levels | None
) -> ChainStates:
    """Makes the chains before step 1, on the host; no state counts as visited yet.

    What NumPy computes needs no compilation, which would take longer than all of it.

    Args:
      model: of f.
      sampler: the base sampler.
      batch: instances and keys.
      x: states, 0 outside the mask.
      levels: of localization; None without it.
    """

    x = np.asarray(x)
    *chains, num_sites = x.shape

    def of_each(leaf):
        return np.array(np.broadcast_to(leaf, (*chains, *np.shape(leaf))))

    field = model.fields_on_host(batch.params, x)
    if field is None:
        field = compiled.call(_fields, batch.params, x, model=model)
    shape = model.sites.shape(num_sites)
    if levels is None:
        state: Any = jax.tree.map(of_each, sampler.init_state(batch.keys.mcmc[0, 0], shape))
    else:
        # The first level alone, so that other numbers of levels share compiled code.
        first = Levels(*(np.atleast_1d(leaf)[:1] for leaf in levels))._replace(
            first_noise=levels.first_noise
        )
        state = compiled.call(
            _localized, batch.keys.observation, first, sampler=sampler, shape=shape
        )
    unvisited = Best(of_each(np.float32(-np.inf)), x)
    chain = Chain(x, field, state)  # type: ignore[arg-type]
    return jax.tree.map(np.asarray, ChainStates(chain, unvisited, unvisited))


# Exchanges of states between chains of neighbouring temperatures: non-reversible parallel
# tempering.
#
# After interval n the pairs of places (r, r + 1) where r has the parity of n are tried, so that
# even and odd pairs alternate (Okabe et al. 2001; Syed et al. 2022). A state then crosses the
# ladder in a time proportional to its length, rather than to its square as with randomly chosen
# pairs.


def accept_swaps(
    keys: StepKeys,
    value: Float[Array, "G B"],
    temperature: Float[Array, "..."],
    step,
    interval,
    ladder: int,
) -> Bool[Array, "G B"]:
    """Returns whether each chain swaps its state with the next one.

    Args:
      keys: [G, B] keys of the chains. Only swaps draw from observation keys directly; elsewhere
        they are folded.
      value: f of each chain.
      temperature: of all chains, or [B] of each.
      step: number of the last step before the swaps.
      interval: number of the interval that ends with this step.
      ladder: R.
    """
    num_chains = value.shape[1]
    rate = 1 / jnp.broadcast_to(temperature, num_chains)
    rung = jnp.arange(num_chains) % ladder
    is_tried = (rung % 2 == interval % 2) & (rung < ladder - 1)
    word, _ = jax.vmap(jax.vmap(draw_words, (0, None)), (0, None))(
        keys.observation, step.astype(jnp.uint32)
    )
    # Of chains with targets exp(rate f).
    log_ratio = (rate - jnp.roll(rate, -1)) * (jnp.roll(value, -1, axis=1) - value)
    return is_tried & (word_to_uniform(word) < jnp.exp(jnp.minimum(log_ratio, 0.0)))


def swap(leaves: Any, swaps: Bool[Array, "G B"]) -> Any:
    """Returns arrays [G, B, ...] of the chains, in which the entries of chains that swap change
    places.
    """
    step = swaps.astype(jnp.int32)
    origin = jnp.arange(step.shape[1], dtype=jnp.int32) + step - jnp.roll(step, 1, axis=1)
    take = jax.vmap(lambda leaf, origin: leaf[origin])
    return jax.tree.map(lambda leaf: take(leaf, origin), leaves)
