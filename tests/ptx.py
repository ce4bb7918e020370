"""An interpreter of PTX, the assembly of NVIDIA GPUs: plays one block of a compiled kernel on a
CPU, and watches it.

A register is an array with a value for each lane, and an instruction an operation of NumPy on those
of the active lanes. Of the lanes that can go on, those at the earliest instruction do, so that
lanes that took different branches come together again where the code does. This is one of the
orders in which a GPU may run them. What others might change is found as a *hazard*: two lanes use a
word of memory, one of them writing, without a barrier between.

Reads and writes out of bounds, barriers and exchanges that some lane of the warp (or block) never
comes to, and instructions that are not known raise `PtxError`. Rounding is that of float32 with
exact elementary functions, from which a GPU's approximate ones differ in the last bits.
"""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import numpy as np

WIDTH = 32
_TYPES = {
    f"{kind}{8 * size}": np.dtype(f"{'i' if kind == 's' else 'u'}{size}")
    for kind in "bus"
    for size in (1, 2, 4, 8)
} | {"f32": np.dtype("f4"), "pred": np.dtype("?")}
# Registers by the beginning of their names, the longest first.
_REGISTERS = {"%rd": "u64", "%SP": "u64", "%rs": "u16", "%r": "u32", "%f": "f32", "%p": "pred"}
# Where the arrays of a kernel's arguments begin in an address space of their own.
_BASE = 1 << 20


class PtxError(Exception):
    """The kernel does what no kernel may, or what is not known here."""


class Instruction(NamedTuple):
    """An instruction: `@guard name.modifiers operands;`.

    Attributes:
      guard: register of the condition under which a lane takes part; empty for all.
      wanted: its value.
      name: such as `add`.
      modifiers: such as `s32`; the last one is the type of the result or of the operands.
      operands: their texts.
      text: the whole line.
    """

    guard: str
    wanted: bool
    name: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    text: str


class Kernel(NamedTuple):
    """The code of a kernel.

    Attributes:
      code: its instructions.
      labels: numbers of the instructions that branches go to.
      parameters: names of its parameters, in order.
      shared: where the arrays in shared memory begin, and their bytes, by name.
      num_local: bytes of a lane's own memory.
    """

    code: list[Instruction]
    labels: dict[str, int]
    parameters: list[str]
    shared: dict[str, tuple[int, int]]
    num_local: int


def parse(text: str) -> Kernel:
    """Returns the kernel of a PTX module that has one."""
    code, labels, parameters, shared, end, num_local = [], {}, [], {}, 0, 8
    for line in text.splitlines():
        line = line.split("//")[0].strip()
        if found := re.search(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\]", line):
            # Apart from each other, so that an index beyond one array does not reach the next.
            begin = -(-end // 16) * 16 + 16
            shared[found[2]], end = (begin, int(found[3])), begin + int(found[3])
        elif found := re.match(r"\.param \.\w+ (\w+)", line):
            parameters.append(found[1])
        elif found := re.match(r"\.local .*\[(\d+)\]", line):
            num_local = int(found[1])
        elif found := re.match(r"(\$?\w+):$", line):
            labels[found[1]] = len(code)
        elif line.endswith(";") and not line.startswith("."):
            code.append(_instruction(line[:-1]))
    return Kernel(code, labels, parameters, shared, num_local)


def _instruction(line: str) -> Instruction:
    guard, wanted = "", True
    if line.startswith("@"):
        guard, line = line[1:].split(None, 1)
        guard, wanted = guard.lstrip("!"), not guard.startswith("!")
    operation, *rest = line.split(None, 1)
    operands = re.split(r",\s*(?![^\[{]*[\]}])", rest[0]) if rest else []
    name, *modifiers = operation.split(".")
    return Instruction(
        guard, wanted, name, tuple(modifiers), tuple(one.strip() for one in operands), line
    )


class Memory:
    """Bytes that lanes read and write at addresses of their own.

    Args:
      arrays: where each array begins, and its bytes; everything else is out of bounds.
    """

    def __init__(self, arrays: list[tuple[int, int]]):
        end = max((begin + size for begin, size in arrays), default=0)
        self.bytes = np.zeros(-(-end // 8) * 8 + 8, np.uint8)
        self._allocated = np.zeros(len(self.bytes), bool)
        for begin, size in arrays:
            self._allocated[begin : begin + size] = True

    def _check(self, places: np.ndarray, size: int) -> None:
        inside = (places >= 0) & (places + size <= len(self.bytes)) & (places % size == 0)
        if not inside.all() or not self._allocated[places].all():
            raise PtxError("an address that is out of bounds or not aligned")

    def _words(self, places: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        self._check(places, dtype.itemsize)
        return self.bytes.view(dtype), places // dtype.itemsize

    def load(self, places: np.ndarray, dtype: np.dtype) -> np.ndarray:
        words, at = self._words(places, dtype)
        return words[at]

    def store(self, places: np.ndarray, values: np.ndarray, dtype: np.dtype) -> None:
        words, at = self._words(places, dtype)
        words[at] = values.astype(dtype, copy=False)


class Watched(Memory):
    """Memory that lanes share, of which each pair of bytes knows who read and wrote it since when.

    Attributes:
      hazards: pairs of instructions, the earlier one and the later one, that different lanes ran
        without a barrier in between on the same bytes.
    """

    _NOBODY, _SEVERAL = -1, -2

    def __init__(self, arrays: list[tuple[int, int]]):
        super().__init__(arrays)
        self.hazards: set[tuple[int, int]] = set()
        self._epoch = 0
        # Of the last write, and of the reads since a barrier: when, by which lane, by which
        # instruction.
        self._written, self._read = (
            np.full((3, len(self.bytes) // 2), self._NOBODY) for _ in range(2)
        )

    def barrier(self) -> None:
        """All that was done before is ordered before what follows."""
        self._epoch += 1

    def watch(
        self, places: np.ndarray, size: int, lanes: np.ndarray, number: int, writes: bool
    ) -> None:
        """Takes note of lanes that use bytes at an instruction of this number."""
        self._check(places, size)
        for at in (places // 2 + k for k in range(max(size // 2, 1))):
            for before in (self._written, self._read) if writes else (self._written,):
                meets = (before[0, at] == self._epoch) & (before[1, at] != lanes)
                self.hazards.update((int(one), number) for one in np.unique(before[2, at[meets]]))
            if writes:
                if len(np.unique(at)) < len(at):
                    self.hazards.add((number, number))
                _note(self._written, at, self._epoch, lanes, number)
            else:
                others = (self._read[0, at] == self._epoch) & (self._read[1, at] != lanes)
                _note(self._read, at, self._epoch, np.where(others, self._SEVERAL, lanes), number)
                places_, counts = np.unique(at, return_counts=True)
                self._read[1, places_[counts > 1]] = self._SEVERAL


def _note(notes: np.ndarray, at: np.ndarray, epoch: int, lanes: np.ndarray, number: int) -> None:
    notes[0, at], notes[1, at], notes[2, at] = epoch, lanes, number


class Block:
    """A block of lanes that plays a kernel.

    Args:
      kernel: its code.
      parameters: values of its parameters.
      memory: that pointers among them point into, from `_BASE` on.
      number: of the block.
      lanes: how many.

    Attributes:
      hazards: see `Watched`.
      issues: how often a warp issued each instruction.
    """

    def __init__(
        self, kernel: Kernel, parameters: list[Any], memory: Watched, number: int, lanes: int
    ):
        self._kernel, self._parameters, self._memory = (
            kernel,
            dict(zip(kernel.parameters, parameters, strict=True)),
            memory,
        )
        self._lanes, self._shared = np.arange(lanes), Watched(list(kernel.shared.values()))
        self._local = Memory([(0, kernel.num_local * lanes)])
        self._constants: dict[tuple[str, np.dtype], np.ndarray] = {}
        self._meets = np.array([_is_collective(one) for one in kernel.code])
        self._special = {
            "%tid.x": self._lanes, "%laneid": self._lanes % WIDTH, "%ctaid.x": np.full(lanes, number),
            "%ntid.x": np.full(lanes, lanes),
            **{f"%{name}.{axis}": 0 * self._lanes for name in ("tid", "ctaid") for axis in "yz"},
        }  # fmt: skip
        self._registers: dict[str, np.ndarray] = {}
        self._at, self._ended = np.zeros(lanes, np.int64), np.zeros(lanes, bool)
        self.issues = np.zeros(len(kernel.code), np.int64)

    @property
    def hazards(self) -> set[tuple[int, int]]:
        return self._shared.hazards | self._memory.hazards

    def run(self) -> None:
        """Plays the kernel to its end."""
        self._memory.barrier()
        with np.errstate(all="ignore"):
            while not self._ended.all():
                self._step()

    def _step(self) -> None:
        waiting = self._waiting()
        can = ~self._ended & ~waiting
        if not can.any():
            raise PtxError(
                "lanes wait for others at "
                f"{sorted({self._kernel.code[k].text for k in self._at[waiting]})}"
            )
        number = int(self._at[can].min())
        here, one = can & (self._at == number), self._kernel.code[number]
        self.issues[number] += here.reshape(-1, WIDTH).any(axis=1).sum()
        active = here
        if one.guard:
            active = here & (self._value(one.guard, _TYPES["pred"]) == one.wanted)
        self._at[here] += 1
        if one.name == "bra":
            self._at[active] = self._kernel.labels[one.operands[0]]
        elif one.name == "ret":
            self._ended |= active
        elif active.any() or _is_collective(one):
            self._active, self._number = active, number
            _EXECUTE.get(one.name, _unknown)(self, one)

    def _waiting(self) -> np.ndarray:
        """Which lanes are at an exchange or barrier that others of their warp, or block, are still
        to come to.
        """
        waits = np.zeros(len(self._at), bool)
        for number in np.unique(self._at[self._meets[self._at] & ~self._ended]):
            here = self._at == number
            group = len(self._at) if _is_of_block(self._kernel.code[number]) else WIDTH
            together = (here | self._ended).reshape(-1, group).all(axis=1)
            waits |= here & ~np.repeat(together, group)
        return waits

    # Operands.

    def _value(self, operand: str, dtype: np.dtype) -> np.ndarray:
        """Returns an operand of all lanes, as numbers of a type."""
        if operand in self._special:
            return self._special[operand].astype(dtype)
        if operand.startswith("%"):
            found = self._registers.get(operand)
            if found is None:
                found = self._registers[operand] = np.zeros(len(self._lanes), _storage(operand))
            return (
                found.view(dtype)
                if found.dtype.itemsize == dtype.itemsize and dtype.kind != "b"
                else found.astype(dtype)
            )
        key = operand, dtype
        if key not in self._constants:
            self._constants[key] = np.full(len(self._lanes), self._constant(operand, dtype), dtype)
        return self._constants[key]

    def _constant(self, operand: str, dtype: np.dtype) -> Any:
        if operand in self._kernel.shared:
            return self._kernel.shared[operand][0]
        if operand.startswith("__local_depot"):
            return 0
        if operand.startswith("0f"):
            return np.uint32(int(operand[2:], 16)).view(np.float32 if dtype.kind == "f" else dtype)
        if dtype.kind == "f":
            raise PtxError(f"a number in another form: {operand}")
        number = int(operand, 0) % (1 << 8 * dtype.itemsize)
        return (
            bool(number)
            if dtype.kind == "b"
            else np.array(number, f"u{dtype.itemsize}").view(dtype)
        )

    def _put(self, operand: str, value: np.ndarray) -> None:
        """Writes a register of the active lanes; a narrower value is extended by its sign, if it
        has one.
        """
        storage = _storage(operand)
        if value.dtype != storage:
            wide = (
                value
                if value.dtype.itemsize >= storage.itemsize
                else value.astype(f"{value.dtype.kind}{storage.itemsize}")
            )
            value = wide.view(storage)
        if not self._active.all():
            value = np.where(self._active, value, self._value(operand, storage))
        self._registers[operand] = value

    def _places(self, operand: str) -> np.ndarray:
        """Returns the addresses `[base + offset]` of the active lanes."""
        base, offset = _address(operand)
        return self._value(base, _TYPES["s64"])[self._active] + offset

    def _memory_at(
        self, space: str, places: np.ndarray, size: int, writes: bool
    ) -> tuple[Memory, np.ndarray]:
        lanes = self._lanes[self._active]
        if space == "local":
            return self._local, places + lanes * self._kernel.num_local
        memory, places = (
            (self._shared, places) if space == "shared" else (self._memory, places - _BASE)
        )
        memory.watch(places, size, lanes, self._number, writes)
        return memory, places


@functools.cache
def _address(operand: str) -> tuple[str, int]:
    base, offset = re.fullmatch(r"\[([\w%$.]+)(?:\+(-?\d+))?\]", operand).groups()
    return base, int(offset or 0)


@functools.cache
def _storage(register: str) -> np.dtype:
    return next(_TYPES[kind] for name, kind in _REGISTERS.items() if register.startswith(name))


def _is_collective(one: Instruction) -> bool:
    return one.name in ("bar", "barrier", "shfl", "vote", "match")


def _is_of_block(one: Instruction) -> bool:
    return one.name in ("bar", "barrier") and one.modifiers[0] != "warp"


# What instructions do.


def _unknown(block: Block, one: Instruction) -> None:
    raise PtxError(f"unknown instruction: {one.text}")


def _load(block, one):
    space, dtype = one.modifiers[0], _TYPES[one.modifiers[-1]]
    if space == "param":
        block._put(
            one.operands[0],
            np.full(len(block._lanes), block._parameters[one.operands[1].strip("[]")]).astype(
                dtype
            ),
        )
        return
    registers, places = one.operands[0].strip("{}").split(","), block._places(one.operands[1])
    for k, register in enumerate(registers):
        memory, at = block._memory_at(space, places + k * dtype.itemsize, dtype.itemsize, False)
        value = np.zeros(len(block._lanes), dtype)
        value[block._active] = memory.load(at, dtype)
        block._put(register.strip(), value)


def _store(block, one):
    space, dtype, places = (
        one.modifiers[0],
        _TYPES[one.modifiers[-1]],
        block._places(one.operands[0]),
    )
    for k, operand in enumerate(one.operands[1].strip("{}").split(",")):
        memory, at = block._memory_at(space, places + k * dtype.itemsize, dtype.itemsize, True)
        memory.store(at, block._value(operand.strip(), dtype)[block._active], dtype)


def _of_type(function):
    """An instruction all of whose operands and whose result have the type of its last modifier."""

    def execute(block, one):
        dtype = _TYPES[one.modifiers[-1]]
        values = (block._value(operand, dtype) for operand in one.operands[1:])
        block._put(one.operands[0], function(*values).astype(dtype, copy=False))

    return execute


def _multiply(block, one):
    """`mul` and `mad`: the low half of the product, the high half, or a product of twice
    the width.
    """
    form, dtype = one.modifiers[0], _TYPES[one.modifiers[-1]]
    wide = dtype if dtype.kind == "f" else np.dtype(f"{dtype.kind}{min(2 * dtype.itemsize, 8)}")
    x, y = (block._value(operand, dtype) for operand in one.operands[1:3])
    if form == "hi" and dtype.itemsize == 8:
        value = np.array([int(a) * int(b) >> 64 for a, b in zip(x, y, strict=True)], object) % (
            1 << 64
        )
        value = value.astype(np.uint64).view(dtype)
    elif form in ("wide", "hi"):
        value = x.astype(wide) * y.astype(wide)
        value = value if form == "wide" else (value >> 8 * dtype.itemsize).astype(dtype)
    else:
        value = x * y
    block._put(
        one.operands[0],
        value + block._value(one.operands[3], value.dtype) if one.name == "mad" else value,
    )


def _divide(x, y):
    if x.dtype.kind == "f":
        return x / y
    y = np.where(y == 0, 1, y)
    return (
        np.where((x < 0) != (y < 0), -(abs(x) // abs(y)), abs(x) // abs(y))
        if x.dtype.kind == "i"
        else x // y
    )


def _shift(left):
    def execute(block, one):
        dtype = _TYPES[one.modifiers[-1]]
        bits, x, by = (
            8 * dtype.itemsize,
            block._value(one.operands[1], dtype),
            block._value(one.operands[2], _TYPES["u32"]),
        )
        kept = np.minimum(by, bits - 1).astype(dtype)
        value = x << kept if left else x >> kept
        if left or dtype.kind == "u":
            value = np.where(by < bits, value, 0)
        block._put(one.operands[0], value.astype(dtype))

    return execute


def _funnel_shift(block, one):
    low, high, by = (
        block._value(operand, _TYPES["u32"]).astype(np.uint64) for operand in one.operands[1:]
    )
    word, by = high << np.uint64(32) | low, by & np.uint64(31)
    value = word << by >> np.uint64(32) if one.modifiers[0] == "l" else word >> by
    block._put(one.operands[0], value.astype(np.uint32))


def _bits(block, one):
    """`bfe` and `bfi`: the extraction and the insertion of a field of bits."""
    dtype = _TYPES[one.modifiers[-1].replace("s", "u")]
    inserts = one.name == "bfi"
    x = block._value(one.operands[1], dtype)
    begin, length = (
        block._value(operand, _TYPES["u32"]).astype(dtype)
        for operand in one.operands[2 + inserts :]
    )
    mask = (dtype.type(1) << length) - dtype.type(1)
    if inserts:
        into = block._value(one.operands[2], dtype)
        value = into & ~(mask << begin) | (x & mask) << begin
    elif one.modifiers[-1].startswith("s"):
        raise PtxError(f"unknown instruction: {one.text}")
    else:
        value = x >> begin & mask
    block._put(one.operands[0], value)


_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def _compare(block, one):
    """Comparisons; those of float32 with a `u` also hold for what is not a number."""
    form, dtype = one.modifiers[0], _TYPES[one.modifiers[-1]]
    x, y = (block._value(operand, dtype) for operand in one.operands[1:3])
    value = _COMPARISONS[form[:2]](x, y)
    if dtype.kind == "f" and form.endswith("u"):
        value |= np.isnan(x) | np.isnan(y)
    block._put(one.operands[0], value)


def _select(block, one):
    dtype = _TYPES[one.modifiers[-1]]
    x, y = (block._value(operand, dtype) for operand in one.operands[1:3])
    block._put(one.operands[0], np.where(block._value(one.operands[3], _TYPES["pred"]), x, y))


_ROUNDINGS = {"rmi": np.floor, "rpi": np.ceil, "rzi": np.trunc, "rni": np.rint}


def _convert(block, one):
    to, of = (_TYPES[name] for name in one.modifiers if name in _TYPES)
    value = block._value(one.operands[1], of)
    rounding = next((_ROUNDINGS[name] for name in one.modifiers if name in _ROUNDINGS), None)
    if rounding:
        value = rounding(value)
        if to.kind != "f":
            limits = np.iinfo(to)
            value = np.clip(np.nan_to_num(value.astype(np.float64)), limits.min, limits.max)
    block._put(one.operands[0], value.astype(to))


def _shuffle(block, one):
    form, target = one.modifiers[1], one.operands[0].split("|")
    value, by, limits = (
        block._value(operand, _TYPES["u32"]).astype(np.int64) for operand in one.operands[1:4]
    )
    lane, segment, clamp = block._lanes % WIDTH, limits >> 8 & 31, limits & 31
    most, least = lane & segment | clamp & ~segment, lane & segment
    other = {
        "up": lane - by,
        "down": lane + by,
        "bfly": lane ^ by,
        "idx": least | by & 31 & ~segment,
    }[form]
    inside = other >= most if form == "up" else other <= most
    other = np.where(inside, other, lane)
    block._put(target[0], value[block._lanes // WIDTH * WIDTH + other].astype(np.uint32))
    if len(target) > 1:
        block._put(target[1], inside)


def _votes(holds):
    """Words whose bits say for which lanes of a warp something holds; [..., 32] to [...]."""
    return (
        (holds.astype(np.uint64) << np.arange(WIDTH, dtype=np.uint64))
        .sum(axis=-1)
        .astype(np.uint32)
    )


def _vote(block, one):
    words = _votes(block._value(one.operands[1], _TYPES["pred"]).reshape(-1, WIDTH))
    block._put(one.operands[0], np.repeat(words, WIDTH))


def _match(block, one):
    value = block._value(one.operands[1], _TYPES["u32"]).reshape(-1, WIDTH)
    block._put(one.operands[0], _votes(value[:, :, None] == value[:, None, :]).reshape(-1))


def _barrier(block, one):
    # That of a warp orders what the other warps do in no way.
    if _is_of_block(one) or len(block._lanes) == WIDTH:
        block._shared.barrier()
        block._memory.barrier()


def _by_lane(function):
    """An instruction on words, computed lane by lane."""

    def execute(block, one):
        words = block._value(one.operands[1], _TYPES["u" + one.modifiers[-1][1:]])
        block._put(one.operands[0], np.array([function(int(word)) for word in words], np.uint32))

    return execute


def _find_bit(block, one):
    """`bfind.shiftamt`: how far a word must be shifted for its highest bit to come first."""
    if one.modifiers[0] != "shiftamt":
        _unknown(block, one)
    _by_lane(lambda x: 32 - x.bit_length() if x else 0xFFFFFFFF)(block, one)


def _exactly(function):
    return _of_type(lambda *values: function(*(value.astype(np.float64) for value in values)))


_EXECUTE = {
    "ld": _load, "st": _store, "mov": _of_type(lambda x: x), "cvta": _of_type(lambda x: x), "cvt": _convert,
    "add": _of_type(np.add), "sub": _of_type(np.subtract), "mul": _multiply, "mad": _multiply,
    "div": _of_type(_divide),
    "rem": _of_type(lambda x, y: x - _divide(x, y) * y), "fma": _exactly(lambda x, y, z: x * y + z),
    "min": _of_type(np.fmin), "max": _of_type(np.fmax), "neg": _of_type(np.negative), "abs": _of_type(abs),
    "and": _of_type(np.bitwise_and), "or": _of_type(np.bitwise_or), "xor": _of_type(np.bitwise_xor),
    "not": _of_type(np.invert), "shl": _shift(True), "shr": _shift(False), "shf": _funnel_shift,
    "bfe": _bits, "bfi": _bits, "setp": _compare, "selp": _select,
    "ex2": _exactly(np.exp2), "lg2": _exactly(np.log2), "sqrt": _exactly(np.sqrt), "rcp": _exactly(np.reciprocal),
    "popc": _by_lane(int.bit_count), "clz": _by_lane(lambda x: 32 - x.bit_length()), "bfind": _find_bit,
    "brev": _by_lane(lambda x: int(f"{x:032b}"[::-1], 2)),
    "shfl": _shuffle, "vote": _vote, "match": _match, "bar": _barrier, "barrier": _barrier,
}  # fmt: skip


def play(kernel: Kernel, arguments: tuple, blocks: int, lanes: int) -> list[Block]:
    """Plays all blocks of a kernel on arguments of numba's: numbers, arrays, which are modified,
    and tuples of them.

    An array is passed as numba-cuda does: two empty fields, its size, its item's, a pointer, shape
    and strides.
    """
    parameters: list[Any] = []
    arrays: list[tuple[int, np.ndarray]] = []
    end = 0

    def add(value):
        nonlocal end
        if isinstance(value, tuple):
            for one in value:
                add(one)
        elif isinstance(value, np.ndarray):
            arrays.append((end, value))
            parameters.extend(
                (0, 0, value.size, value.itemsize, _BASE + end, *value.shape, *value.strides)
            )
            end = -(-(end + value.nbytes + 256) // 256) * 256
        else:
            parameters.append(value)

    add(arguments)
    memory = Watched([(begin, array.nbytes) for begin, array in arrays])
    for begin, array in arrays:
        memory.bytes[begin : begin + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    played = [Block(kernel, parameters, memory, number, lanes) for number in range(blocks)]
    for block in played:
        block.run()
    for begin, array in arrays:
        if array.size:
            array[...] = (
                memory.bytes[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
            )
    return played
