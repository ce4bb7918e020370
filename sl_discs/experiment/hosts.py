"""Several hosts play one run: each process loads and plays its share of the instances, and host 0 writes the results.

Instances are independent, so nothing is exchanged while the chains run; what hosts say to each other goes through the
small key-value store of JAX's coordination service, which host 0 serves: a sign of life about once a second, and at
the end each share's results. No collective is used. A collective would bind the hosts to finish at the same moment,
and one that dies would take the others with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from sl_discs.errors import InputError
from sl_discs.experiment.board import Board
from sl_discs.experiment.host_watch import BAD_INPUT, FAILED, LEFT, STOPPING, Watch
from sl_discs.experiment.interruption import RESUME_ME, Interrupted, Notice

# Bytes a message; the transport takes a few MiB.
_PART = 1 << 20
# Between two looks at the board.
_POLL_S = 0.2
# For which host 0, without whom the others hear nothing, waits for them to leave.
_FAREWELL_S = 10.0


@dataclasses.dataclass(frozen=True)
class Hosts:
    """This process among those that play the run.

    Attributes:
      index: of this one, from 0.
      count: of all.
      board: what all of them see; None where there is one.
      watch: of the others; None where there is one.
    """

    index: int = 0
    count: int = 1
    board: Board | None = None
    watch: Watch | None = None

    @property
    def label(self) -> str:
        """`host 2 of 4`, counted from 0; empty where there is one."""
        return "" if self.count == 1 else f"host {self.index} of {self.count}"

    def share(self, num_instances: int) -> range:
        """Positions of this host's instances: consecutive ones, as many as any other host's or one more.

        Raises:
          InputError: there are more hosts than instances.
        """
        if self.count > num_instances:
            raise InputError(
                f"{self.count} hosts for {num_instances} instances would leave some without work; start fewer"
            )
        return range(self.index * num_instances // self.count, (self.index + 1) * num_instances // self.count)

    def checkpoint_folder(self, folder: Path) -> Path:
        """Where this host keeps its checkpoints under the run's folder.

        Raises:
          InputError: an interrupted run has left those of another number of hosts.
        """
        whole = folder / "checkpoint"
        mine = whole if self.count == 1 else whole / f"host-{self.index}-of-{self.count}"
        left = {1} if (whole / "kind.json").exists() else set()
        left |= {int(path.name.rpartition("-")[2]) for path in whole.glob("host-*-of-*")}
        if left - {self.count}:
            there = ", ".join(str(count) for count in sorted(left))
            raise InputError(
                f"{whole}: left by a run on {there} host(s), and this one has {self.count}; start as many to resume "
                "it, give another save_root, or remove the folder to begin anew"
            )
        return mine

    def tidy(self, folder: Path) -> None:
        """Removes what held the hosts' checkpoints once all of them have removed theirs; the last one succeeds."""
        if self.count > 1:
            with contextlib.suppress(OSError):
                (folder / "checkpoint").rmdir()

    def attend(self, notice: Notice) -> None:
        """From now on the notice is also given when another host stops or is gone."""
        if self.watch is not None:
            self.watch.attend(notice)

    def _do(self, work: Callable[[], Any], notice: Notice, folder: Path) -> Any:
        """Does what needs the board, in a thread: where the coordinator is gone it may hang, and the notice comes."""
        done = queue.SimpleQueue()

        def attempt():
            # Where the service is gone the watch says so.
            with contextlib.suppress(RuntimeError):
                done.put(work())

        threading.Thread(target=attempt, daemon=True).start()
        while True:
            with contextlib.suppress(queue.Empty):
                return done.get(timeout=_POLL_S)
            if notice.given:
                raise Interrupted(folder, notice.reason)

    def gather(self, mine: bytes, notice: Notice, folder: Path) -> list[bytes] | None:
        """The bytes of all hosts in their order, on host 0; None on the others.

        Raises:
          Interrupted: a host stopped before all had given theirs; `folder` is where this one goes on from.
        """
        if self.count == 1:
            return [mine]
        return self._do(functools.partial(self._receive if self.index == 0 else self._send, mine), notice, folder)

    def _send(self, mine: bytes) -> None:
        parts = range(0, len(mine), _PART)
        for number, start in enumerate(parts):
            self.board.put(f"share/{self.index}/{number}", mine[start : start + _PART])
        self.board.put(f"ready/{self.index}", str(len(parts)).encode())

    def _receive(self, mine: bytes) -> list[bytes]:
        while len(self.board.under("ready")) < self.count - 1:
            time.sleep(_POLL_S)
        shares = [mine]
        for host in range(1, self.count):
            parts = int(self.board.get(f"ready/{host}"))
            shares.append(b"".join(self.board.get(f"share/{host}/{number}") for number in range(parts)))
        return shares

    def agree_on_end(self, notice: Notice, folder: Path) -> None:
        """Returns once host 0 has come here too, with everything written: nobody's checkpoints are needed then.

        Raises:
          Interrupted: it stopped before that.
        """
        if self.count > 1:
            self._do(self._say_written if self.index == 0 else self._hear_written, notice, folder)

    def _say_written(self) -> None:
        self.board.put("written/0", b"1")

    def _hear_written(self) -> None:
        while not self.board.under("written"):
            time.sleep(_POLL_S)

    def exit_code(self) -> int:
        """Of a run that was interrupted: 75, or 2 where another host's input is bad, which a rerun does not mend."""
        return RESUME_ME if self.watch is None else self.watch.code

    def end(self, code: int, message: str = "") -> None:
        """Tells the others how this host ends, and ends the process; does nothing where there is one host.

        Python's own way out would wait for the threads of a coordination service that may be gone.
        """
        if self.count == 1:
            return
        state = {0: LEFT, 2: BAD_INPUT, RESUME_ME: STOPPING}.get(code, FAILED)
        self.watch.finish(state, message, _FAREWELL_S if self.index == 0 else 0.0)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _check_flags(coordinator: str | None, count: int | None, index: int | None) -> None:
    given = {"coordinator": coordinator, "num_hosts": count, "host": index}
    missing = [f"--{name}" for name, value in given.items() if value is None]
    if missing:
        raise InputError(
            f"{' and '.join(missing)} not given: several hosts take --coordinator=HOST:PORT (an address of host 0), "
            "--num_hosts=N and --host=K together"
        )
    name, _, port = coordinator.rpartition(":")
    if not name or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"--coordinator is {coordinator!r}; expected HOST:PORT, such as node17:12345")
    if count < 1 or not 0 <= index < count:
        raise InputError(f"--host is {index} of --num_hosts {count}; expected one of 0 to {count - 1}")


def _update_if_known(option: str, value: bool) -> None:
    """Sets an option of JAX that not every version has."""
    try:
        jax.config.update(option, value)
    except AttributeError:
        return


def _end_if_nobody_comes(wait_s: float, where: str) -> threading.Timer:
    """JAX aborts the process with a stack trace when hosts stay away; this is earlier, and says what to do."""

    def give_up():
        sys.stderr.write(
            f"error: not all hosts came within {wait_s:g} s ({where}); start them all, with addresses and ports that "
            "they can reach, or raise --connect_timeout_s\n"
        )
        sys.stderr.flush()
        os._exit(2)

    timer = threading.Timer(wait_s, give_up)
    timer.daemon = True
    timer.start()
    return timer


def connect(
    coordinator: str | None = None,
    count: int | None = None,
    index: int | None = None,
    *,
    connect_timeout_s: float = 300.0,
    host_timeout_s: float = 60.0,
) -> Hosts:
    """Joins the other hosts, before JAX has looked for devices; one host alone where nothing says otherwise.

    Args:
      coordinator: `HOST:PORT` of host 0; with this, `count` and `index` are needed and no cluster is looked for.
      count: of hosts; 1 is one host alone.
      index: of this one.
      connect_timeout_s: for which the hosts wait for each other; then they end with exit code 2.
      host_timeout_s: after so many seconds without a sign of life a host counts as dead.

    Returns:
      this host. Without arguments, that of a SLURM job step of several tasks, one host a task.

    Raises:
      InputError: arguments are missing or impossible.
    """
    for name, value in (("connect_timeout_s", connect_timeout_s), ("host_timeout_s", host_timeout_s)):
        if not value > 0:
            raise InputError(f"--{name} is {value:g}; expected more than 0 seconds")
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS") or os.environ.get("SLURM_NTASKS", "1")
    if (coordinator, count, index) != (None, None, None):
        _check_flags(coordinator, count, index)
        if count == 1:
            return Hosts()
        found = {
            "coordinator_address": coordinator, "num_processes": count, "process_id": index,
            "cluster_detection_method": "deactivate",
        }  # fmt: skip
    elif tasks.isdecimal() and int(tasks) > 1 and "SLURM_PROCID" in os.environ:
        found = {"cluster_detection_method": "slurm"}
    else:
        return Hosts()
    # JAX's own handler of SIGTERM would take the place of this project's.
    _update_if_known("jax_enable_preemption_service", False)
    # Without this a host that dies ends all others at once, with nothing saved.
    _update_if_known("jax_enable_recoverability", True)
    timer = _end_if_nobody_comes(connect_timeout_s, coordinator or "as SLURM lists them")
    try:
        jax.distributed.initialize(
            initialization_timeout=math.ceil(connect_timeout_s) + 30,
            # The watch says which host is gone; JAX only that the coordinator is.
            heartbeat_timeout_seconds=math.ceil(host_timeout_s) + 10,
            **found,
        )
        # Processes tell each other what devices they have when they look for them: now, while all are here.
        jax.local_devices()
    except (RuntimeError, ValueError) as error:
        raise InputError(f"the hosts cannot connect: {' '.join(str(error).split())}") from None
    finally:
        timer.cancel()
    from jax._src.distributed import global_state  # the one way to the store that JAX offers

    index, count = jax.process_index(), jax.process_count()
    board = Board(global_state.client)
    watch = Watch(index, count, board, host_timeout_s, global_state.coordinator_address)
    watch.start()
    return Hosts(index, count, board, watch)
