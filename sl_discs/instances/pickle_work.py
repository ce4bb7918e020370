"""Checks that reading a pickle takes time proportional to its length, by counting its instructions before they run.

A few bytes can nest "a pair of the previous pair" many times, and the time to hash, compare or copy the result
doubles with each level. Each instruction is therefore charged for the sizes of its operands, where shared parts
count as often as they occur. No object of the pickle is created here.
"""

from __future__ import annotations

import mmap
import pickle
import pickletools

# Units allowed per byte, and for any file. Pickles of networkx graphs are charged 1 to 100 units per byte, the most
# with NumPy numbers as weights and with cached views of the graph.
_UNITS_A_BYTE, _FREE_UNITS = 1000, 10**6
_DEEPEST = 100

_LENGTH_BYTES = {
    pickletools.TAKEN_FROM_ARGUMENT1: 1,
    pickletools.TAKEN_FROM_ARGUMENT4: 4,
    pickletools.TAKEN_FROM_ARGUMENT4U: 4,
    pickletools.TAKEN_FROM_ARGUMENT8U: 8,
}
_PUSH, _PUT, _GET, _MARK, _TAKE, _TAKE_TO_MARK, _POP, _POP_MARK, _NOTHING, _STOP, _UNKNOWN = range(11)
_KINDS = {
    "PUT": _PUT,
    "BINPUT": _PUT,
    "LONG_BINPUT": _PUT,
    "MEMOIZE": _PUT,
    "GET": _GET,
    "BINGET": _GET,
    "LONG_BINGET": _GET,
    "DUP": _GET,
    "MARK": _MARK,
    "POP": _POP,
    "POP_MARK": _POP_MARK,
    "PROTO": _NOTHING,
    "FRAME": _NOTHING,
    "STOP": _STOP,
}
# These instructions modify the object on the stack below their operands.
_CHANGING = ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD")


def _entry(op) -> tuple[int, int, int, bool]:
    """Kind, length of the argument (negative: how it is encoded), number of operands, whether it modifies another."""
    to_mark = pickletools.markobject in op.stack_before
    kind = _KINDS.get(op.name, _TAKE_TO_MARK if to_mark else _TAKE if op.stack_before else _PUSH)
    changing = op.name in _CHANGING
    return kind, op.arg.n if op.arg else 0, len(op.stack_before) - changing, changing


_TABLE = [(_UNKNOWN, 0, 0, False)] * 256
for _op in pickletools.opcodes:
    _TABLE[ord(_op.code)] = _entry(_op)
_MEMOIZE, _DUP, _TWO_LINES = b"\x94"[0], b"2"[0], b"ci"


class TooMuchWork(Exception):
    """Reading the pickle would take disproportionate time for its length."""


def check_work(data: bytes | mmap.mmap, start: int) -> int:
    """Goes through the instructions of a pickle.

    Args:
      data: one or more pickles.
      start: where the pickle begins.

    Returns:
      the position where it ends.

    Raises:
      TooMuchWork: reading it would take too long.
      Exception: it is damaged: `pickle.UnpicklingError`, EOFError, IndexError, KeyError or ValueError.
    """
    # An object is represented by a list of its total size and its nesting depth.
    stack, marks = [], []
    memo: dict = {}
    plain = [1, 0]
    position, units, limit = start, 0, _FREE_UNITS + _UNITS_A_BYTE * (len(data) - start)
    while position < len(data):
        code = data[position]
        kind, length, takes, changing = _TABLE[code]
        begin = position + 1
        position = begin + length
        if length < 0:
            begin, position = _argument(data, begin, code, length)
        if kind == _PUSH:
            # An object pushed without an argument may be a container, which can grow.
            stack.append([1, 0] if position == begin else plain if position - begin < 9 else [position - begin, 0])
        elif kind == _PUT:
            place = len(memo) if code == _MEMOIZE else _number(data[begin:position], length)
            if place > len(data):
                raise TooMuchWork(f"{place} places to remember objects in")
            memo[place] = stack[-1]
        elif kind == _GET:
            stack.append(stack[-1] if code == _DUP else memo[_number(data[begin:position], length)])
        elif kind == _MARK:
            marks.append(len(stack))
        elif kind in (_TAKE, _TAKE_TO_MARK):
            height = marks.pop() if kind == _TAKE_TO_MARK else len(stack) - takes
            if height < changing:
                raise pickle.UnpicklingError("an instruction without operands")
            size = depth = 0
            for part in stack[height:]:
                size += part[0]
                depth = part[1] if part[1] > depth else depth
            del stack[height:]
            units += size
            if units > limit:
                raise TooMuchWork("objects that contain each other many times over")
            if depth >= _DEEPEST:
                raise TooMuchWork("objects that are nested too deeply")
            if changing:
                changed = stack[-1]
                changed[0] += size
                changed[1] = max(changed[1], depth + 1)
            else:
                stack.append([1 + size, depth + 1])
        elif kind == _STOP:
            return position
        elif kind == _POP_MARK or (kind == _POP and marks and marks[-1] == len(stack)):
            del stack[marks.pop() :]
        elif kind == _POP:
            stack.pop()
        elif kind == _UNKNOWN:
            raise pickle.UnpicklingError(f"no such instruction: {code}")
    raise EOFError("it ends too early")


def _argument(data: bytes | mmap.mmap, begin: int, code: int, length: int) -> tuple[int, int]:
    """Where an argument of variable length begins and ends: one or two lines, or a count followed by bytes."""
    if length == pickletools.UP_TO_NEWLINE:
        end = _next_line(data, begin)
        return begin, _next_line(data, end) if code in _TWO_LINES else end
    number = data[begin : begin + _LENGTH_BYTES[length]]
    begin += len(number)
    return begin, begin + int.from_bytes(number, "little")


def _next_line(data: bytes | mmap.mmap, begin: int) -> int:
    end = data.find(b"\n", begin)
    if end < 0:
        raise EOFError("it ends too early")
    return end + 1


def _number(argument: bytes, length: int) -> int:
    return int(argument) if length < 0 else int.from_bytes(argument, "little")
