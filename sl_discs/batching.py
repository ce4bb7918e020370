"""How per-chain functions learn about the batch that they are mapped over.

Samplers are written for one chain and mapped over chains and instances with `jax.vmap`. A loop whose length
differs between chains would then carry a select of its whole state in every turn. Instead such a loop runs to the
longest chain's length, its surplus turns doing nothing, and that length is found here: the maps are named, and
the maximum over the named axes is one number for the whole batch.
"""

from __future__ import annotations

import jax
from jax import lax
from jaxtyping import Array, Float, Int

CHAIN_AXIS = "chain"
INSTANCE_AXIS = "instance"


def _is_mapped(axis: str) -> bool:
    try:
        lax.axis_index(axis)
    except NameError:  # what JAX raises for an axis that no enclosing map has
        return False
    return True


def batch_max(length: Int[Array, ""]) -> Int[Array, ""]:
    """The largest `length` among the chains of the enclosing named maps; `length` itself outside of them."""
    for axis in (CHAIN_AXIS, INSTANCE_AXIS):
        if _is_mapped(axis):
            length = lax.pmax(length, axis)
    return length


def chain_mean(value: Float[Array, ""]) -> Float[Array, ""]:
    """Mean of `value` over the chains of one instance; `value` itself outside a map over chains."""
    return lax.pmean(value, CHAIN_AXIS) if _is_mapped(CHAIN_AXIS) else value


def chain_max(value: Float[Array, ""]) -> Float[Array, ""]:
    """Maximum of `value` over the chains of one instance; `value` itself outside a map over chains."""
    return lax.pmax(value, CHAIN_AXIS) if _is_mapped(CHAIN_AXIS) else value


def over_chains(function, in_axes=0, out_axes=0):
    """`jax.vmap` over the chains of one instance."""
    return jax.vmap(function, in_axes, out_axes, axis_name=CHAIN_AXIS)


def over_instances(function, in_axes=0, out_axes=0):
    """`jax.vmap` over instances."""
    return jax.vmap(function, in_axes, out_axes, axis_name=INSTANCE_AXIS)
