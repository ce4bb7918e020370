"""Checkpoints of a run, so that an interrupted command continues where it left off and gives the
same results.

A run is a list of parts, each a method on a batch of instances. The folder holds `kind.json`,
everything that the results depend on; `part-<name>.npz`, the outcome of a finished part; and the
last two `state-<n>.npz`, chains in the middle of a part. Each file is written atomically, and holds
the digest of `kind.json`. If a file is damaged or of another run, the run falls back to the
previous state, or to the beginning of the part, and repeats the steps since then. A folder with
files but no `kind.json` is not ours and is refused; files of other names are never removed.

Keys are functions of (seed, instance, chain, step) and calls end at the same steps, so a resumed
run gives bit for bit the same results as an uninterrupted one.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from sl_discs.support.documents import Damaged, read_json, read_npz, write_json
from sl_discs.support.errors import InputError, Interrupted
from sl_discs.support.files import is_temporary, remove_temporary, write_atomically
from sl_discs.support.identity import check_same, digest
from sl_discs.support.signals import Notice
from sl_discs.support.terminal import tell

_KEPT_STATES = 2
_KIND = "kind"  # in each file: digest of the run's identity
_STATE = re.compile(r"state-[0-9]+\.npz")
_PART = re.compile(r"part-[A-Za-z0-9._+-]+\.npz")


Restored = TypeVar("Restored")


class Middle(NamedTuple):
    """A part that was interrupted: steps done, leaves of the chains and of each call's record, and
    seconds.
    """

    step: int
    chains: list[np.ndarray]
    traces: list[list[np.ndarray]]
    run_s: float


class Checkpoints:
    """The checkpoints of one run, which resumes from those of an interrupted one if there are any.

    Args:
      folder: their folder.
      kind: identity of the run, in plain values.
      every_s: seconds between two checkpoints.
      notice: notice of an interruption.

    Raises:
      InputError: the checkpoints there belong to another run, or the files there are no
        checkpoints.
    """

    def __init__(self, folder: Path, kind: dict[str, Any], every_s: float, notice: Notice):
        self.folder = Path(folder)
        self.every_s = every_s
        self.notice = notice
        remove_temporary(self.folder)
        self._kind = kind
        self._digest = digest(kind)
        self._last = time.monotonic()
        self._failed = False
        self._resumed: list[str] = []
        try:
            identity = read_json(self.folder / "kind.json")
        except Damaged:
            raise InputError(
                f"{self.folder}: its kind.json cannot be read; remove the folder to begin anew"
            ) from None
        foreign = [path.name for path in _entries(self.folder) if not is_temporary(path)]
        if identity is None and foreign:
            raise InputError(
                f"{self.folder}: holds {foreign[0]!r} and no kind.json, so it is not the "
                "checkpoints of a run; "
                "give another save_root, or move the folder"
            )
        if identity is not None:
            advice = (
                "run that one again to resume it, give another save_root, or remove the "
                "folder to begin anew"
            )
            check_same(
                f"{self.folder}: an interrupted run with other settings", kind, identity, advice
            )

    def _states(self) -> list[Path]:
        return sorted(
            (path for path in _entries(self.folder) if _STATE.fullmatch(path.name)), key=_number_of
        )

    def finished(
        self, part: str, restore: Callable[[dict[str, np.ndarray]], Restored]
    ) -> Restored | None:
        """Returns what `restore` makes of the arrays of a finished part; None if the part has to be
        run.
        """
        restored = self._restored(self.folder / _file_of(part), part, restore)
        if restored is not None:
            self._resumed.append(f"{part} was finished")
        return restored

    def middle(self, part: str, restore: Callable[[Middle], object]) -> Middle | None:
        """Returns the state at which a part was interrupted, which `restore` accepts; None if there
        is none.

        Both functions raise a ValueError or KeyError where the arrays do not fit.
        """

        def restored(arrays):
            traces = [_leaves(arrays, f"trace-{call}") for call in range(int(arrays["calls"]))]
            middle = Middle(
                int(arrays["step"]), _leaves(arrays, "chain"), traces, float(arrays["run_s"])
            )
            restore(middle)
            return middle

        for path in reversed(self._states()):
            middle = self._restored(path, part, restored)
            if middle is not None:
                self._resumed.append(
                    f"{part} from step {middle.step:,} of "
                    f"{self._kind['experiment']['chain_length']:,}"
                )
                tell(f"continued: {self._resumed[-1]}")
                return middle
        return None

    def resumed(self) -> str:
        """In words, what this run has taken from checkpoints; empty: nothing."""
        return f"continued from checkpoints: {', '.join(self._resumed)}" if self._resumed else ""

    def finish(self, part: str, arrays: dict[str, np.ndarray]) -> None:
        """Saves the outcome of a part."""
        self._save(_file_of(part), {"part": part, **arrays})

    def offer(self, part: str, step: int, chains: Any, traces: list[Any], run_s: float) -> None:
        """Saves the state of a part if a checkpoint is due, or if the run was told to stop.

        Raises:
          Interrupted: the run was told to stop.
        """
        stop = self.notice.given
        if not stop and time.monotonic() - self._last < self.every_s:
            return
        arrays = {"part": part, "step": step, "run_s": run_s, "calls": len(traces)}
        for prefix, tree in (
            ("chain", chains),
            *((f"trace-{call}", trace) for call, trace in enumerate(traces)),
        ):
            arrays |= {
                f"{prefix}-{k}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(tree))
            }
        self._save(f"state-{max(map(_number_of, self._states()), default=0) + 1}.npz", arrays)
        with contextlib.suppress(OSError):  # something else has the name of a state
            for path in self._states()[:-_KEPT_STATES]:
                path.unlink(missing_ok=True)
        self._last = time.monotonic()
        if stop:
            raise Interrupted(self.folder)

    def _save(self, name: str, arrays: dict[str, Any]) -> None:
        """Writes a checkpoint; a failure does not end the run."""
        try:
            if not (self.folder / "kind.json").exists():
                write_json(self.folder / "kind.json", self._kind)
            write_atomically(
                self.folder / name, lambda file: np.savez(file, **(arrays | {_KIND: self._digest}))
            )
        except InputError as error:
            if self.notice.given:
                raise
            if not self._failed:
                tell(f"warning: no checkpoint: {error}; the run continues without")
            self._failed = True

    def _restored(
        self, path: Path, part: str, restore: Callable[[dict[str, np.ndarray]], Restored]
    ) -> Restored | None:
        """Returns what a function makes of the arrays of a file.

        None if it is missing, of another part, or, with a warning, corrupt (each array has a
        checksum), of another run or of other sizes.
        """
        if not path.exists():
            return None
        try:
            arrays = read_npz(path)
            if str(arrays.pop(_KIND, "")) != self._digest:
                raise InputError(f"{path}: of another run")
            named = str(arrays.pop("part"))
            if named == part:
                return restore(arrays)
            if path.name == _file_of(part):
                raise InputError(f"{path}: of {named}")
            return None
        except InputError as error:
            reason = str(error)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            reason = f"{path}: it holds other arrays ({error})"
        tell(f"warning: {reason}; falling back to the previous checkpoint")
        return None


def remove_checkpoints(folder: Path) -> None:
    """Removes the checkpoints in `folder`, `kind.json` last, and the folder unless it holds other
    files.
    """
    kind = folder / "kind.json"
    if not kind.exists():
        return
    with contextlib.suppress(OSError):
        for path in _entries(folder):
            if is_temporary(path) or any(name.fullmatch(path.name) for name in (_STATE, _PART)):
                path.unlink()
        kind.unlink()
        folder.rmdir()


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _file_of(part: str) -> str:
    return f"part-{re.sub(r'[^A-Za-z0-9._+-]+', '-', part)}.npz"


def _number_of(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def _leaves(arrays: dict[str, np.ndarray], prefix: str) -> list[np.ndarray]:
    names = (f"{prefix}-{k}" for k in range(len(arrays)))
    return [arrays[name] for name in names if name in arrays]
