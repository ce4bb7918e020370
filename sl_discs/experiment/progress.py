"""The progress bar of a run, by default in chain-steps of the sampler at work."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(total: int, unit: str = " chain-steps", label: str = "") -> Iterator[Callable[[str, int], None]]:
    """A function of (sampler, units done) that draws one bar a sampler on the terminal's error stream.

    `label` follows the sampler's name, such as that of the host among several. Without tqdm, or where the error
    stream is no terminal, it draws nothing.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda name, steps: None
        return
    bars = {}

    def advance(name: str, steps: int) -> None:
        if name not in bars:
            title = f"{name}, {label}" if label else name
            bars[name] = tqdm(total=total, desc=title, unit=unit, unit_scale=True, file=sys.stderr, disable=None)
        bars[name].update(steps)

    try:
        yield advance
    finally:
        for bar in bars.values():
            bar.close()
