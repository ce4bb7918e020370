"""The model interface: the values of a site; a log-density with gains of all alternatives, and
cheap updates after moves; and the target of a kernel: a model with its parameters, temperature,
tilt and mask.

All methods are written for one state; callers map them over chains and instances.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Int8, Num

from sl_discs.models import keys
from sl_discs.models.batching import AnyArray
from sl_discs.models.keys import Key
from sl_discs.support.errors import InputError

# What the sites of a model can be: two values each, or several.
#
# Samplers decide which sites change. To what they change, and how probable that is, is decided
# here, so one sampler serves both: a site of two values has one alternative, and one of q values
# has q - 1. `logits` are log-weights of the alternatives, with the shape of the model's gains.

# int8 holds the values of a state.
MOST_VALUES = 127
# Weights of the alternatives of a site are floored at exp(-80) times the largest, as those of sites
# are in `samplers.draws`. The floor depends only on the state, so that Metropolis and Hastings'
# ratio stays exact.
_LOWEST_LOGIT = -80.0
# The least number of sites that bounds of estimated gains are made for.
_BOUNDED_AS = 20
# With one-hot vectors of this length two values are at distance 2, as the spins -1 and 1 are.
SPIN_LENGTH = float(np.sqrt(2.0))


@dataclasses.dataclass(frozen=True)
class Sites:
    """Spins, moves and tilts of the states of a model, x [N] int8; here for two values, 0 and 1,
    with spins -1 and 1.

    Attributes:
      num_values: of each site.
      several: whether a site has more than one alternative. If not, `choose` and `log_chance`
        ignore logits.
    """

    several: ClassVar[bool] = False

    num_values: int = dataclasses.field(default=2, init=False)

    def shape(self, num_sites: int) -> tuple[int, ...]:
        """Returns the shape of spins, tilts, logits and gains."""
        return (num_sites,)

    def spins(self, x: Int8[AnyArray, "N"]) -> Num[Array, "N *q"]:
        """Returns the vectors that localization observes: two values of a site are at
        distance 2.
        """
        # Compared, not computed: on CPUs XLA (of JAX 0.10.2) compiles 2 (1 - x) - 1 in int8 to
        # wrong numbers.
        return jnp.where(x > 0, jnp.int8(1), jnp.int8(-1))

    def decode(self, y: Float[AnyArray, "*B"]) -> Int8[AnyArray, "*C"]:
        """Returns the states whose spins are closest to observations [..., N] or [..., N, q]."""
        return (y > 0).astype(jnp.int8)

    def random(self, key: Key, mask: Bool[AnyArray, "N"]) -> Int8[AnyArray, "*batch N"]:
        """Draws for each key, and each site of the mask, any value with equal probability; 0
        outside of the mask.
        """
        bits = keys.uniforms(key, mask.shape) < 0.5
        return (bits & mask).astype(np.int8)

    def tilt_gains(self, x: Int8[Array, "N"], tilt: Float[Array, "N *q"]) -> Float[Array, "N *q"]:
        """Returns the change of <spins, tilt> by each alternative."""
        return 2 * jnp.where(x > 0, -tilt, tilt)

    def tilt_change(
        self, x: Int8[Array, "N"], tilt: Float[Array, "N *q"], y: Int8[Array, "N"]
    ) -> Float[Array, ""]:
        """Returns the change of <spins, tilt> from x to y."""
        return jnp.sum(jnp.where(x != y, self.tilt_gains(x, tilt), 0.0))

    def total(self, x: Int8[Array, "N"], logits: Float[Array, "N *q"]) -> Float[Array, "N"]:
        """Returns the log of the total weight of the alternatives of each site."""
        return logits

    def choose(
        self,
        key: Key,
        x: Int8[Array, "N"],
        logits: Float[Array, "N *q"] | None,
        flips: Bool[Array, "N"],
    ) -> Int8[Array, "N"]:
        """Returns x with the sites of `flips` at alternatives drawn by weight."""
        return apply_flips(x, flips)

    def log_chance(
        self, x: Int8[Array, "N"], y: Int8[Array, "N"], logits: Float[Array, "N *q"] | None
    ) -> Float[Array, ""] | float:
        """Returns the log-probability that `choose` moves the sites of x that differ from y to the
        values of y.
        """
        return 0.0

    def gradient(self, x: Int8[Array, "N"], gains: Float[Array, "N *q"]) -> Float[Array, "N *q"]:
        """Returns a vector with these gains, in DISCS's form: with respect to x, or to its one-hot
        vectors.
        """
        return (1 - 2 * x) * gains

    def gains(self, x: Int8[Array, "N"], gradient: Float[Array, "N *q"]) -> Float[Array, "N *q"]:
        """Returns the gains of a vector in that form: exact for a function that is linear in each
        site.
        """
        return (1 - 2 * x).astype(jnp.float32) * gradient


@dataclasses.dataclass(frozen=True)
class Categories(Sites):
    """Sites with values 0 .. q - 1, for the `sites` of a `Model`.

    A state x [N] is int8, and gains, tilts and logits are [N, q], one for each value of a site.

    Example:
        >>> sites = sl_discs.models.Categories(3)
        >>> sites.spins(jnp.array([0, 2], jnp.int8)).shape
        (2, 3)

    Spins are one-hot vectors of length sqrt(2), centred. For q = 2 these are the spins -1 and 1
    along one line, so localization then has the same law as with `Sites`. All of a site's spins
    have the same norm, and so the posterior given an observation adds a linear tilt alone.

    Attributes:
      num_values: q, from 2 to 127.
    """

    several: ClassVar[bool] = True

    num_values: int = dataclasses.field()  # no default, which that of `Sites` would be

    def __post_init__(self):
        if not 2 <= self.num_values <= MOST_VALUES:
            raise InputError(
                f"num_values is {self.num_values}; expected 2 to {MOST_VALUES} values for each site"
            )

    def _alternatives(self, x):
        return jnp.arange(self.num_values) != x[:, None]

    def _log_weights(self, x, logits):
        """Returns logits relative to the largest of each site, -inf for x itself; and these largest
        logits.
        """
        allowed = self._alternatives(x)
        top = jnp.max(jnp.where(allowed, logits, -jnp.inf), axis=1, keepdims=True)
        return jnp.where(allowed, jnp.maximum(logits - top, _LOWEST_LOGIT), -jnp.inf), top[:, 0]

    def shape(self, num_sites):
        return (num_sites, self.num_values)

    def spins(self, x):
        """Returns sqrt(2) (e(x) - 1/q)."""
        one_hot = jnp.arange(self.num_values) == x[:, None]
        return SPIN_LENGTH * (one_hot.astype(jnp.float32) - 1 / self.num_values)

    def decode(self, y):
        return jnp.argmax(y, axis=-1).astype(jnp.int8)

    def random(self, key, mask):
        drawn = jnp.floor(keys.uniforms(key, mask.shape) * self.num_values)
        # Rounding may give q.
        return jnp.where(mask, jnp.minimum(drawn, self.num_values - 1), 0).astype(jnp.int8)

    def tilt_gains(self, x, tilt):
        return SPIN_LENGTH * (tilt - entries(tilt, x)[:, None])

    def tilt_change(self, x, tilt, y):
        return SPIN_LENGTH * jnp.sum(entries(tilt, y) - entries(tilt, x))

    def total(self, x, logits):
        weights, top = self._log_weights(x, logits)
        return top + jnp.log(jnp.sum(jnp.exp(weights), axis=1))

    def choose(self, key, x, logits, flips):
        """Takes the first alternative at which the cumulative weight exceeds a uniform part of the
        total.
        """
        weights = jnp.exp(self._log_weights(x, logits)[0])
        running = jnp.where(weights > 0, jnp.cumsum(weights, axis=1), 0.0)
        level = keys.uniforms(key, x.shape)[:, None] * jnp.max(running, axis=1, keepdims=True)
        return jnp.where(flips, jnp.argmax(running > level, axis=1).astype(x.dtype), x)

    def log_chance(self, x, y, logits):
        weights, _ = self._log_weights(x, logits)
        chances = entries(weights, y) - jnp.log(jnp.sum(jnp.exp(weights), axis=1))
        return jnp.sum(jnp.where(x != y, chances, 0.0))

    def gradient(self, x, gains):
        return jnp.where(self._alternatives(x), gains, 0.0)

    def gains(self, x, gradient):
        return gradient - entries(gradient, x)[:, None]


def apply_flips(x: Int8[Array, "N"], flips: Bool[Array, "N"]) -> Int8[Array, "N"]:
    """Returns x with the sites flipped at which `flips` is True, of two values each.

    The state of one chain; map it with `jax.vmap` over many.

    Example:
        >>> x = jnp.array([0, 1, 1], jnp.int8)
        >>> sl_discs.models.apply_flips(x, jnp.array([True, False, True])).tolist()
        [1, 1, 0]

    Args:
      x: [N] zeros and ones in int8.
      flips: [N] booleans.

    Returns:
      a new array [N] in the dtype of x.
    """
    return x ^ flips.astype(x.dtype)


def entries(of: Num[AnyArray, "N q"], x: Int8[AnyArray, "N"]) -> Num[Array, "N"]:
    """Returns the entry of each site at its value."""
    return jnp.take_along_axis(jnp.asarray(of), x.astype(jnp.int32)[:, None], axis=1)[:, 0]


# Models, and the targets of kernels.

Params = Any
Field = Any


class Model(abc.ABC):
    """A log-density f(x), up to a constant, on x in {0,1}^N, or on sites of several values.

    `init` computes a field: any data that the model keeps with x to make the other methods cheap.
    All methods are written for one state x [N] in int8; engines map them over chains and instances.
    A subclass is a frozen dataclass, hashable, as JAX compiles for each model, and its parameters
    are arrays, whose values compile nothing.

    Example: independent sites, whose parameters are their log-odds and whose field is empty.
        >>> @dataclasses.dataclass(frozen=True)
        ... class Independent(sl_discs.models.Model):
        ...     num_sites: int
        ...     def init(self, params, x):
        ...         return ()
        ...     def value(self, params, x, field):
        ...         return jnp.sum(params * x)
        ...     def gains(self, params, x, field):
        ...         return jnp.where(x > 0, -params, params)
        >>> target = Independent(2).target(jnp.array([1.0, 2.0]), jnp.ones(2, bool))
        >>> target.gains(jnp.array([0, 1], jnp.int8), ()).tolist()
        [1.0, -2.0]

    Attributes:
      num_sites: N.
      sites: their values. Where they have more than two, gains are [N, q].
      estimates: whether gains may be far off, as those by a gradient. Targets then bound them.
    """

    estimates: ClassVar[bool] = False

    num_sites: int
    sites: Sites = Sites()

    @abc.abstractmethod
    def init(self, params: Params, x: Int8[Array, "N"]) -> Field:
        """Returns the field at x, computed from scratch."""

    def fields_on_host(self, params: Params, x: Int8[np.ndarray, "G B N"]) -> Field | None:
        """Returns the fields of many chains of G instances by NumPy; None where the model only
        computes with JAX.
        """
        return None

    @abc.abstractmethod
    def value(self, params: Params, x: Int8[Array, "N"], field: Field) -> Float[Array, ""]:
        """Returns f(x)."""

    @abc.abstractmethod
    def gains(self, params: Params, x: Int8[Array, "N"], field: Field) -> Float[Array, "N *q"]:
        """Returns f(x with site i flipped) - f(x) for every i, exact for multilinear f, otherwise
        to first order.

        With several values: of site i set to v, for every i and v. `gibbs` then relies on them to
        be exact.
        """

    def update(
        self, params: Params, x: Int8[Array, "N"], field: Field, y: Int8[Array, "N"]
    ) -> Field:
        """Returns the field at y, given that at x: computed from scratch, unless a model knows
        better.
        """
        return self.init(params, y)

    def change(
        self, params: Params, x: Int8[Array, "N"], before: Field, y: Int8[Array, "N"], after: Field
    ) -> Float[Array, ""]:
        """Returns f(y) - f(x), where a model can without the cancellation of subtracting two
        values.
        """
        return self.value(params, y, after) - self.value(params, x, before)

    def coupled(self, params: Params, site: Int[Array, ""]) -> Bool[Array, "N"]:
        """Returns the other sites whose gains may depend on this one, and this one's on theirs;
        all, unless known.
        """
        return jnp.arange(self.num_sites) != site

    def target(self, params: Params, mask: Bool[AnyArray, "N"]) -> Target:
        """Returns the distribution exp(f) over the sites of the mask."""
        return Target(self, params, jnp.float32(1), mask)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Target:
    """The distribution q(x) ~ exp(f(x)/temperature + <s, tilt>) that a kernel samples from, s the
    spins of x.

    With s = 2x - 1 a flip gains d_i/temperature - 2 s_i tilt_i, where d_i are the gains of f. The
    tilt is linear whatever f is, so every model can be localized (Wang, Cui, Zhao and Yu 2025). The
    field is the model's. A kernel asks the target alone, and never the model.

    Example:
        >>> case = standard_cases()[0]
        >>> target = case.model.target(case.target.params, case.mask)
        >>> x = jnp.zeros(target.num_sites, jnp.int8)
        >>> target.gains(x, target.init(x)).shape
        (5,)

    Attributes:
      model: of f; static.
      params: of the model.
      temperature: above 0, or infinite.
      mask: [N] sites that may change; the others exist for padding, or are held.
      tilt: of the spins, [N] or [N, q]; None for zero.
    """

    model: Model = dataclasses.field(metadata={"static": True})
    params: Params
    temperature: Any
    mask: Any
    tilt: Any = None

    def tilted(self, tilt: Float[Array, "N *q"] | None) -> Target:
        """This target with another tilt."""
        return dataclasses.replace(self, tilt=tilt)

    def masked(self, mask: Bool[AnyArray, "N"]) -> Target:
        """This target with another mask."""
        return dataclasses.replace(self, mask=mask)

    @property
    def sites(self) -> Sites:
        """Their values."""
        return self.model.sites

    @property
    def num_sites(self) -> int:
        """N."""
        return self.model.num_sites

    def init(self, x: Int8[Array, "N"]) -> Field:
        """Returns the field at x, computed from scratch."""
        return self.model.init(self.params, x)

    def value(self, x: Int8[Array, "N"], field: Field) -> Float[Array, ""]:
        """Returns log q(x), up to a constant."""
        value = self.model.value(self.params, x, field) / self.temperature
        return value if self.tilt is None else value + jnp.sum(self.sites.spins(x) * self.tilt)

    def gains(self, x: Int8[Array, "N"], field: Field) -> Float[Array, "N *q"]:
        """Returns the change of log q by each alternative, as `Model.gains`, estimates within
        bounds.

        With these bounds and the balancing sqrt(t), N sites of the least gain are proposed together
        about as often as one whose gain is 0. So a wrong estimate never keeps a chain from a state.
        """
        gains = self.model.gains(self.params, x, field) / self.temperature
        if self.model.estimates:
            most = 2 * jnp.log(jnp.maximum(jnp.sum(self.mask), _BOUNDED_AS).astype(jnp.float32))
            gains = jnp.clip(gains, -most, most)
        return gains if self.tilt is None else gains + self.sites.tilt_gains(x, self.tilt)

    def update(self, x: Int8[Array, "N"], field: Field, y: Int8[Array, "N"]) -> Field:
        """Returns the field at y, given that at x."""
        return self.model.update(self.params, x, field, y)

    def change(
        self, x: Int8[Array, "N"], before: Field, y: Int8[Array, "N"], after: Field
    ) -> Float[Array, ""]:
        """Returns log q(y) - log q(x); at infinite temperature all states at which f is finite are
        equal.
        """
        change = self.model.change(self.params, x, before, y, after)
        change = jnp.where(change == -jnp.inf, change, change / self.temperature)
        return change if self.tilt is None else change + self.sites.tilt_change(x, self.tilt, y)

    def coupled(self, site: Int[Array, ""]) -> Bool[Array, "N"]:
        """Returns the sites whose gains depend on a site, see `Model.coupled`."""
        return self.model.coupled(self.params, site)


class TargetModel:
    """Targets in DISCS's calling convention: a model of batches of states, whose parameters are a
    `Target`.
    """

    def target(self, params: Target, mask: Bool[AnyArray, "N"]) -> Target:
        """Returns the target itself, with this mask."""
        return params.masked(mask)

    def forward(self, params: Target, x: Num[Array, "B N"]) -> Float[Array, "B"]:
        """Returns log q of each state of a batch, up to a constant."""
        return jax.vmap(lambda x: params.value(x, params.init(x)))(x.astype(jnp.int8))

    def get_value_and_grad(
        self, params: Target, x: Num[Array, "B N"]
    ) -> tuple[Float[Array, "B"], Float[Array, "B N *q"]]:
        """Returns `forward`, and a vector with the gains of each state as `Sites.gradient`."""

        def one(x):
            field = params.init(x)
            return params.value(x, field), params.sites.gradient(x, params.gains(x, field))

        return jax.vmap(one)(x.astype(jnp.int8))
