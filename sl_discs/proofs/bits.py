"""Sets of nodes as the bits of 64-bit words, for compiled loops, and the order in which they are coloured."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int64, UInt64
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sl_discs.engines.cpu.jit import entered, inlined

ONE = np.uint64(1)


def bits_of(sets: Bool[np.ndarray, "K n"]) -> UInt64[np.ndarray, "K W"]:
    """Sets of n nodes, in words of 64 bits."""
    padded = np.zeros((len(sets), -(-sets.shape[1] // 64) * 64), np.bool_)
    padded[:, : sets.shape[1]] = sets
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


@intrinsic
def lowest(typing_context, word):
    """The place of the lowest bit of a word that is not 0."""

    def codegen(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), codegen


@intrinsic
def ones(typing_context, word):
    """The number of bits of a word."""

    def codegen(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@inlined
def add(bits, node):
    """Puts a node into a set."""
    bits[node >> 6] |= ONE << np.uint64(node & 63)


@inlined
def drop(bits, node):
    """Takes a node out of a set."""
    bits[node >> 6] &= ~(ONE << np.uint64(node & 63))


def degeneracy_order(adjacency: Bool[np.ndarray, "n n"]) -> Int64[np.ndarray, "n"]:
    """The nodes so that the last one has the least degree, the one before it in what is left, and so on."""
    order = np.empty(len(adjacency), np.int64)
    _sort(np.ascontiguousarray(adjacency), adjacency.sum(axis=1), order)
    return order


@entered
def _sort(adjacency, degrees, order):
    size = degrees.shape[0]
    for place in range(size - 1, -1, -1):
        node = 0
        for other in range(size):
            if degrees[other] < degrees[node]:
                node = other
        order[place] = node
        for other in range(size):
            degrees[other] -= adjacency[node, other]
        degrees[node] = 2 * size
