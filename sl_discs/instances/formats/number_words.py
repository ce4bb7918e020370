"""Converts all words of a block to numbers at once: the loop runs over characters rather than words."""

from __future__ import annotations

import decimal

import numpy as np
from jaxtyping import Bool, Float64, Int64

from sl_discs.instances.formats.lines import Words

# Numbers of digits that always fit into an int64 and, exactly, into a double.
_INT_DIGITS, _DOUBLE_DIGITS = 18, 15


def whole_numbers(words: Words) -> tuple[Int64[np.ndarray, "W"], Bool[np.ndarray, "W"]]:
    """Words of digits as numbers, and which words are not digits or too large."""
    lengths = words.ends - words.starts
    values, wrong = np.zeros(len(words), np.int64), np.zeros(len(words), bool)
    for place in range(min(int(lengths.max(initial=0)), _INT_DIGITS)):
        digits = words.block.take(words.starts + place, mode="clip") - np.uint8(ord("0"))
        inside = lengths > place
        wrong |= inside & (digits > 9)
        values = np.where(inside, 10 * values + digits, values)
    for k in np.flatnonzero(lengths > _INT_DIGITS).tolist():
        (word,) = words[k : k + 1].tolist()
        digits = word.lstrip(b"0") or b"0"
        wrong[k] = not digits.isdigit() or len(digits) > 19 or int(digits) >= 2**63
        values[k] = 0 if wrong[k] else int(digits)
    return values, wrong


def real_numbers(words: Words) -> tuple[Float64[np.ndarray, "W"], Bool[np.ndarray, "W"]]:
    """Words rounded to the nearest double, and which of them `why_not_real` refuses."""
    # Decimals without exponent are read here as quotients of two exact whole numbers, which are rounded only once.
    head = words.block[words.starts]
    negative = head == ord("-")
    starts = words.starts + (negative | (head == ord("+")))
    lengths = words.ends - starts
    mantissa, decimals = np.zeros(len(words), np.int64), np.full(len(words), -1)
    plain = (lengths > 0) & (lengths <= _DOUBLE_DIGITS + 1)
    for place in range(min(int(lengths.max(initial=0)), _DOUBLE_DIGITS + 1)):
        codes = words.block.take(starts + place, mode="clip")
        digits = codes - np.uint8(ord("0"))
        inside = lengths > place
        counted = inside & (digits <= 9)
        point = inside & (codes == ord(".")) & (decimals < 0)
        plain &= ~inside | counted | point
        mantissa = np.where(counted, 10 * mantissa + digits, mantissa)
        decimals += (counted & (decimals >= 0)) | point
    plain &= (lengths <= _DOUBLE_DIGITS) | (decimals >= 0)
    plain &= (lengths > 1) | (decimals < 0)
    values = mantissa / 10.0 ** np.maximum(decimals, 0)
    values = np.where(negative, -values, values)
    wrong = np.zeros(len(words), bool)
    others = np.flatnonzero(~plain)
    for k, word in zip(others.tolist(), words[others].tolist(), strict=True):
        wrong[k] = bool(why_not_real(word))
        values[k] = 0.0 if wrong[k] else float(word)
    return values, wrong


def why_not_real(word: bytes) -> str:
    """Why a word is refused as a number; empty if it is accepted.

    A number without exponent that is 2^53 or more must be exact as a double; smaller whole numbers always are.
    """
    # float() alone would accept nan, inf and 1_000.
    if word.translate(None, b"0123456789+-.eE"):
        return "not a finite number"
    try:
        value = float(word)
    except ValueError:
        return "not a finite number"
    if not np.isfinite(value):
        return "not a finite number"
    if abs(value) >= 2**53 and b"e" not in word.lower() and decimal.Decimal(word.decode()) != value:
        return "beyond 2^53 and not exact in double precision"
    return ""
