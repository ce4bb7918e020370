"""How per-chain functions learn about the batch that they are mapped over.

Samplers are written for one chain and mapped over chains and instances with `jax.vmap`. A loop
whose length differs between chains would then carry a select of its whole state in every turn.
Instead such a loop runs to the longest chain's length, its surplus turns doing nothing, and that
length is found here: the maps are named, and the maximum over the named axes is one number for the
whole batch.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

CHAIN_AXIS = "chain"
INSTANCE_AXIS = "instance"
# The same two axes cut into parts, one for each device.
DEVICE_INSTANCES = "instances"
DEVICE_CHAINS = "chains"


def make_mesh(instances: int = 1, chains: int = 1) -> Mesh:
    """Returns a mesh of the first instances x chains devices of this process."""
    devices = jax.local_devices()[: instances * chains]
    return Mesh(np.array(devices).reshape(instances, chains), (DEVICE_INSTANCES, DEVICE_CHAINS))


def _is_mapped(axis: str) -> bool:
    try:
        lax.axis_index(axis)
    except NameError:  # what JAX raises for an axis that no enclosing map has
        return False
    return True


def batch_max(length: Int[Array, ""]) -> Int[Array, ""]:
    """Returns the largest `length` among the chains of the enclosing named maps; `length` itself
    outside of them.
    """
    for axis in (CHAIN_AXIS, INSTANCE_AXIS):
        if _is_mapped(axis):
            length = lax.pmax(length, axis)
    return length


def _decides_cheaply() -> bool:
    """Returns whether the length of a loop and the choice of a branch may depend on the chains at
    little cost.

    On a GPU the host waits for each of them, which takes longer than the work that they avoid.
    """
    return jax.default_backend() == "cpu"


def turn_width(most: int, few: int) -> int:
    """Returns how many of up to `most` entries a turn of a loop treats at once: `few` on CPUs, all
    on GPUs.
    """
    return min(few, most) if _decides_cheaply() else most


def chain_mean(value: Float[Array, ""]) -> Float[Array, ""]:
    """Returns the mean of `value` over the chains of one instance; `value` itself outside a map
    over chains.
    """
    return jnp.mean(lax.all_gather(value, CHAIN_AXIS)) if _is_mapped(CHAIN_AXIS) else value


def chain_max(value: Float[Array, ""]) -> Float[Array, ""]:
    """Returns the maximum of `value` over the chains of one instance; `value` itself outside a map
    over chains.
    """
    return lax.pmax(value, CHAIN_AXIS) if _is_mapped(CHAIN_AXIS) else value


def over_chains(function, in_axes=0, out_axes=0):
    """Applies `jax.vmap` over the chains of one instance."""
    return jax.vmap(function, in_axes, out_axes, axis_name=CHAIN_AXIS)


def over_instances(function, in_axes=0, out_axes=0):
    """Applies `jax.vmap` over instances."""
    return jax.vmap(function, in_axes, out_axes, axis_name=INSTANCE_AXIS)


def cond_for_batch(predicate: Bool[Array, ""], function, *operands):
    """Returns `function(*operands)` where the predicate holds, else operands[0]; a branch under
    `jax.vmap` too.

    Mapped over different predicates, `lax.cond` becomes a select and always does the work. Here the
    work is done only if some predicate of the batch holds, then for the whole batch; on GPUs
    always. All operands must be passed, not closed over.
    """

    def one(predicate, *operands):
        return jax.tree.map(
            lambda new, old: jnp.where(predicate, new, old), function(*operands), operands[0]
        )

    if not _decides_cheaply():
        return one(predicate, *operands)

    @custom_vmap
    def branch(predicate, *operands):
        return lax.cond(predicate, function, lambda *operands: operands[0], *operands)

    @branch.def_vmap
    def _(axis_size, mapped, predicate, *operands):
        axes = jax.tree.map(lambda is_mapped: 0 if is_mapped else None, mapped)
        predicates = predicate if mapped[0] else jnp.broadcast_to(predicate, axis_size)
        # The result is mapped, so what it replaces has to be.
        first = jax.tree.map(
            lambda leaf, is_mapped: (
                leaf if is_mapped else jnp.broadcast_to(leaf, (axis_size, *leaf.shape))
            ),
            operands[0],
            mapped[1],
        )
        rest_axes = tuple(axes[2:])

        def all_of_them(first, predicates, *rest):
            return jax.vmap(one, in_axes=(0, 0, *rest_axes))(predicates, first, *rest)

        result = cond_for_batch(jnp.any(predicates), all_of_them, first, predicates, *operands[1:])
        return result, jax.tree.map(lambda _: True, result)

    return branch(predicate, *operands)


# The type of arrays that are NumPy's on the host and JAX's in a computation.

AnyArray = jax.Array | np.ndarray
