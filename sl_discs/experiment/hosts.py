"""One run on several hosts: each process loads and runs its share of the instances, and host 0 joins the results.

Instances are independent, so nothing is exchanged while the chains run. Every host writes its share of the results
to a file in the run's folder, which all hosts see, and host 0 waits for these files. `jax.distributed` starts the
hosts together and ends all of them when one dies; the same command, run again, continues from their checkpoints.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from sl_discs.engines.registry import cores
from sl_discs.errors import InputError
from sl_discs.experiment.checkpoint import Interrupted, Notice
from sl_discs.files import read_json, write_atomically, write_json

_POLL_S = 0.2
# On a network file system, a new folder may become visible some seconds late.
_PATIENCE_S = 30.0
# Variables that JAX needs to find the hosts of a Slurm job step; an allocation alone does not set all of them.
_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")


@dataclasses.dataclass(frozen=True)
class Hosts:
    """This process among those that share the run.

    Attributes:
      index: number of this host, from 0.
      count: number of hosts.
      coordinator: `HOST:PORT` of host 0; empty for a single host, or if Slurm provides it.
    """

    index: int = 0
    count: int = 1
    coordinator: str = ""

    @property
    def label(self) -> str:
        """`host 2 of 4`, counted from 0; empty for a single host."""
        return "" if self.count == 1 else f"host {self.index} of {self.count}"

    def share(self, num_instances: int) -> range:
        """Positions of this host's instances, which are consecutive; the hosts' numbers differ by at most one.

        Raises:
          InputError: there are more hosts than instances.
        """
        if self.count > num_instances:
            raise InputError(
                f"{self.count} hosts for {num_instances} instances would leave some without work; start fewer"
            )
        return range(self.index * num_instances // self.count, (self.index + 1) * num_instances // self.count)

    def checkpoint_folder(self, folder: Path) -> Path:
        """The folder of this host's checkpoints, within the run's folder.

        Raises:
          InputError: there are checkpoints of an interrupted run on another number of hosts.
        """
        left = {1} if (_checkpoints(folder) / "kind.json").exists() else set()
        left |= {int(path.parent.name.rpartition("-")[2]) for path in _checkpoints(folder).glob("host-*/kind.json")}
        if left - {self.count}:
            there = ", ".join(str(count) for count in sorted(left))
            raise InputError(
                f"{_checkpoints(folder)}: left by a run on {there} host(s), but this one has {self.count}; start "
                "as many to resume it, give another save_root, or remove the folder to begin anew"
            )
        return self._folder_of(self.index, folder)

    def _folder_of(self, host: int, folder: Path) -> Path:
        return _checkpoints(folder) if self.count == 1 else _checkpoints(folder) / f"host-{host}-of-{self.count}"

    def _share_of(self, host: int, folder: Path) -> Path:
        return self._folder_of(host, folder) / "share.npz"

    def connect(self, folder: Path, connect_timeout_s: float, host_timeout_s: float) -> None:
        """Joins the other hosts, before JAX has looked for devices.

        Args:
          folder: of the run.
          connect_timeout_s: how long the hosts wait for each other before JAX ends the process.
          host_timeout_s: JAX ends the process if another host has been silent or gone for this long.

        Raises:
          InputError: the hosts cannot connect, or do not see the same folder.
        """
        if self.count == 1:
            return
        if self.index == 0:
            # Shares of an earlier run are removed now, before any host can have written one of this run.
            for host in range(self.count):
                self._share_of(host, folder).unlink(missing_ok=True)
            self._folder_of(0, folder).mkdir(parents=True, exist_ok=True)
        where = f"at {self.coordinator}" if self.coordinator else "as listed by Slurm"
        sys.stderr.write(f"{self.label}: waiting for the others, {where}, for at most {connect_timeout_s:g} s\n")
        sys.stderr.flush()
        # JAX's handler of SIGTERM would replace this project's. Not every version of JAX has the option.
        with contextlib.suppress(AttributeError):
            jax.config.update("jax_enable_preemption_service", False)
        named: dict[str, Any] = {
            "coordinator_address": self.coordinator,
            "num_processes": self.count,
            "process_id": self.index,
        }
        try:
            jax.distributed.initialize(
                **(named if self.coordinator else {}),
                cluster_detection_method="deactivate" if self.coordinator else "slurm",
                initialization_timeout=math.ceil(connect_timeout_s),
                heartbeat_timeout_seconds=math.ceil(host_timeout_s),
                shutdown_timeout_seconds=math.ceil(host_timeout_s),
            )
            # Processes exchange their lists of devices on first use, which must happen while all are connected.
            jax.local_devices()
        except (RuntimeError, ValueError) as error:
            raise InputError(f"the hosts cannot connect: {' '.join(str(error).split())}") from None
        end = time.monotonic() + _PATIENCE_S
        if not _becomes_true(self._folder_of(0, folder).is_dir, lambda: time.monotonic() < end):
            raise InputError(
                f"{folder}: {self.label} cannot see the files of host 0 there; give a "
                "config.experiment.save_root on a file system that all hosts share"
            )

    def hand_in(self, mine: bytes, folder: Path, notice: Notice) -> None:
        """Gives this host's results to host 0, and returns once host 0 has written the results of all hosts.

        Raises:
          Interrupted: the run was told to stop before that.
        """
        path = self._share_of(self.index, folder)
        write_json(_cores_beside(path), _own_cores())
        write_atomically(path, lambda file: file.write(mine))
        self._wait(lambda: not path.exists(), folder, notice)

    def collect(self, folder: Path, notice: Notice) -> list[bytes]:
        """The results of the other hosts in order; called on host 0.

        Raises:
          Interrupted: the run was told to stop before all results were there.
        """
        paths = [self._share_of(host, folder) for host in range(1, self.count)]
        self._wait(lambda: all(path.exists() for path in paths), folder, notice)
        return [path.read_bytes() for path in paths]

    def count_cores(self, folder: Path) -> int:
        """The cores of all hosts, of which those on one machine may share some; called on host 0 after `collect`."""
        others = (read_json(_cores_beside(self._share_of(host, folder))) or {} for host in range(1, self.count))
        return len({(name, core) for one in (_own_cores(), *others) for name, found in one.items() for core in found})

    def _wait(self, is_true: Callable[[], bool], folder: Path, notice: Notice) -> None:
        if not _becomes_true(is_true, lambda: not notice.given):
            raise Interrupted(self._folder_of(self.index, folder))


def remove_checkpoints(folder: Path) -> None:
    """Removes the checkpoints of all hosts once the results are written, which hosts in `hand_in` wait for."""
    shutil.rmtree(_checkpoints(folder), ignore_errors=True)


def find_hosts(coordinator: str | None = None, count: int | None = None, index: int | None = None) -> Hosts:
    """This host, as given by the arguments or, without any, by a Slurm job step with one host per task.

    Args:
      coordinator: `HOST:PORT` of host 0.
      count: number of hosts.
      index: number of this host.

    Raises:
      InputError: arguments are missing or invalid.
    """
    if (coordinator, count, index) == (None, None, None):
        if not all(os.environ.get(name) for name in _SLURM):
            return Hosts()
        return Hosts(int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]))
    given = {"coordinator": coordinator, "num_hosts": count, "host": index}
    if coordinator is None or count is None or index is None:
        missing = [f"--{name}" for name, value in given.items() if value is None]
        raise InputError(
            f"{' and '.join(missing)} not given: several hosts take --coordinator=HOST:PORT (an address of host 0), "
            "--num_hosts=N and --host=K together"
        )
    name, _, port = coordinator.rpartition(":")
    if not name or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"--coordinator is {coordinator!r}; expected HOST:PORT, such as node17:12345")
    if count < 1 or not 0 <= index < count:
        raise InputError(f"--host is {index} of --num_hosts {count}; expected one of 0 to {count - 1}")
    return Hosts(index, count, coordinator) if count > 1 else Hosts()


def _own_cores() -> dict[str, list[int]]:
    """The cores of this process by the name of its machine."""
    return {platform.node(): cores()}


def _cores_beside(share: Path) -> Path:
    return share.with_name("cores.json")


def _checkpoints(folder: Path) -> Path:
    return folder / "checkpoint"


def _becomes_true(is_true: Callable[[], bool], goes_on: Callable[[], bool]) -> bool:
    """Waits until `is_true` holds, as long as `goes_on` does; returns whether it holds."""
    while not is_true():
        if not goes_on():
            return False
        time.sleep(_POLL_S)
    return True
