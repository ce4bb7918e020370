"""Several hosts: the results of one, and when one dies the others end, and all go on when run again."""

import concurrent.futures
import contextlib
import dataclasses
import functools
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest
from test_checkpoint import digests
from test_run import SETTINGS, assert_equal, method, random_dataset

from sl_discs.engines.registry import num_cores
from sl_discs.errors import InputError
from sl_discs.experiment.checkpoint import RESUME_ME, Interrupted, Notice
from sl_discs.experiment.hosts import Hosts, find_hosts, remove_checkpoints
from sl_discs.experiment.output import join_records, pack_records, unpack_records
from sl_discs.experiment.record import device_in_words
from sl_discs.experiment.run import run_methods

ROOT = Path(__file__).parents[2]
SLURM = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")


def test_shares_are_a_fair_division():
    for count, instances in ((1, 5), (3, 7), (4, 4), (64, 1000)):
        shares = [Hosts(k, count).share(instances) for k in range(count)]
        assert [k for share in shares for k in share] == list(range(instances))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    with pytest.raises(InputError, match="5 hosts for 4 instances"):
        Hosts(0, 5).share(4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, 2, 0), "--coordinator not given"),
        (("node:1", None, None), "--num_hosts and --host not given"),
        (("node", 2, 0), "expected HOST:PORT"),
        (("node:70000", 2, 0), "expected HOST:PORT"),
        (("node:1", 2, 2), "--host is 2 of --num_hosts 2; expected one of 0 to 1"),
    ],
)
def test_half_given_flags_are_bad_input(arguments, message):
    with pytest.raises(InputError, match=message):
        find_hosts(*arguments)


def test_one_host_without_flags_and_a_cluster(monkeypatch):
    for name in SLURM:
        monkeypatch.delenv(name, raising=False)
    assert find_hosts() == find_hosts("node:1", 1, 0) == Hosts()
    monkeypatch.setenv("SLURM_NTASKS", "4")  # an allocation of four tasks, of which none was started
    assert find_hosts() == Hosts()
    for name, value in zip(SLURM, ("123", "node[1-4]", "4", "2", "0"), strict=True):
        monkeypatch.setenv(name, value)
    assert find_hosts() == Hosts(2, 4)


def test_shares_joined_are_the_whole():
    dataset = random_dataset(5)
    methods = [method("metropolis")]

    def play(share):
        graphs, index = ([getattr(dataset, field)[k] for k in share] for field in ("graphs", "index"))
        part = dataclasses.replace(dataset, graphs=graphs, index=index)
        records = run_methods("mis", part, 1.0001, methods, SETTINGS, lambda name, steps: None)
        return records | {"the same again": records["metropolis"]}

    whole = play(range(5))
    joined = join_records([unpack_records(pack_records(play(Hosts(k, 2).share(5)))) for k in range(2)])
    assert list(joined) == list(whole)
    for name, record in whole.items():
        assert_equal(record, joined[name])
        for one, other in zip(record.instances, joined[name].instances, strict=True):
            assert (one.feasible, one.reference) == (other.feasible, other.reference)
            assert one.solution.dtype == other.solution.dtype
    steps = [record.chain_steps_per_s * record.run_s for record in (whole["metropolis"], joined["metropolis"])]
    assert steps[0] == pytest.approx(steps[1])


def test_shares_reach_host_0_and_the_others_wait_for_it(tmp_path):
    notice, sent = Notice(), [bytes([k]) * 1000 for k in range(3)]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        others = [pool.submit(Hosts(k, 3).hand_in, sent[k], tmp_path, notice) for k in (2, 1)]
        assert Hosts(0, 3).collect(tmp_path, notice) == sent[1:]
        assert not any(other.done() for other in others)
        remove_checkpoints(tmp_path)
        for other in others:
            other.result(60)


def test_cores_that_hosts_share_count_once(tmp_path, monkeypatch):
    """Two hosts on one machine, and one on another."""
    notice = Notice()
    for k, name in ((1, "a"), (2, "b")):
        monkeypatch.setattr("platform.node", lambda name=name: name)
        with pytest.raises(Interrupted):
            notice.given = True
            Hosts(k, 3).hand_in(b"share", tmp_path, notice)
    monkeypatch.setattr("platform.node", lambda: "a")
    assert Hosts(0, 3).count_cores(tmp_path) == 2 * num_cores()
    assert device_in_words(10**6).startswith(f"{len(jax.devices())} x cpu")
    assert device_in_words(1).startswith("1 x cpu")


def test_a_host_that_waits_can_be_told_to_stop(tmp_path):
    notice = Notice()
    notice.given = True
    for wait in (Hosts(0, 2).collect, functools.partial(Hosts(1, 2).hand_in, b"share")):
        with pytest.raises(Interrupted, match=r"continues from .*host-.-of-2"):
            wait(tmp_path, notice)
    assert Hosts(0, 2).collect(tmp_path, notice) == [b"share"]


def test_checkpoints_of_another_number_of_hosts_are_refused(tmp_path):
    assert Hosts().checkpoint_folder(tmp_path) == tmp_path / "checkpoint"
    folder = Hosts(1, 4).checkpoint_folder(tmp_path)
    folder.mkdir(parents=True)
    Hosts(1, 2).checkpoint_folder(tmp_path)  # there is nothing to resume
    (folder / "kind.json").touch()
    assert Hosts(1, 4).checkpoint_folder(tmp_path) == folder
    for other in (Hosts(), Hosts(1, 2)):
        with pytest.raises(InputError, match=r"left by a run on 4 host\(s\)"):
            other.checkpoint_folder(tmp_path)


PIPES = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def a_free_port(first=1024, last=65535):
    """On this machine, between two bounds."""
    for port in random.sample(range(first, last + 1), 100):
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def flags_of_hosts(count):
    """Flags and environment of each of several hosts that are told who they are."""
    address = f"127.0.0.1:{a_free_port()}"
    return [([f"--coordinator={address}", f"--num_hosts={count}", f"--host={k}"], {}) for k in range(count)]


def slurm_tasks(count):
    """Likewise for tasks of a SLURM job step, from whose number JAX derives the coordinator's port."""
    job = str(a_free_port(61440) - 61440)
    return [([], dict(zip(SLURM, (job, "localhost", str(count), str(k), str(k)), strict=True))) for k in range(count)]


class Run:
    """Processes of the command on a few small graphs, one a host."""

    def __init__(self, folder, hosts, *more, cache):
        command = [
            sys.executable, "-m", "sl_discs.main_sampling", "--config=configs/experiment/maxcut/ba.py",
            "--model_config=configs/model/maxcut_config.py", "--model_config.graph_type=ba",
            "--model_config.cfg_str=r-ba-4-n-16-20", f"--config.experiment.save_root={folder}",
            "--config.experiment.num_instances=5", "--config.experiment.batch_size=4", *more,
        ]  # fmt: skip
        environment = dict(os.environ, JAX_PLATFORMS="cpu", SL_DISCS_CACHE=str(cache))
        self.folder = folder
        self.processes = [
            subprocess.Popen([*command, *flags], cwd=ROOT, env=environment | variables, **PIPES)
            for flags, variables in hosts
        ]

    def wait_for_checkpoints(self):
        """Until each of several hosts has one."""
        saved = [
            self.folder / "checkpoint" / f"host-{k}-of-{len(self.processes)}" for k in range(len(self.processes))
        ]
        while not all(list(folder.glob("state-*.npz")) for folder in saved):
            assert all(process.poll() is None for process in self.processes), self.end()
            time.sleep(0.1)

    def end(self, timeout=600):
        """Exit code, output and error of each."""
        ends = []
        try:
            for process in self.processes:
                output, error = process.communicate(timeout=timeout)
                ends.append((process.returncode, output, error))
        finally:
            for process in self.processes:
                process.kill()
        return ends


ALONE = [([], {})]
SHORT = ("--samplers=metropolis", "--config.experiment.chain_length=200", "--engine=reference")


def test_one_or_two_processes(tmp_path):
    """The same arrays, bit for bit, written and told by host 0 alone, whatever an earlier run has left."""
    left = tmp_path / "2" / "checkpoint" / "host-1-of-2" / "share.npz"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"of an earlier run")
    alone = Run(tmp_path / "1", ALONE, *SHORT, cache=tmp_path / "c")
    ends = Run(tmp_path / "2", slurm_tasks(2), *SHORT, cache=tmp_path / "c").end()
    ((code, output, error),) = alone.end()
    assert code == 0, error
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert "5 instances" in output and "5 instances" in ends[0][1] and ends[1][1] == ""
    assert f"{num_cores()} x cpu" in ends[0][1] and "2 hosts" in ends[0][1]
    assert digests(tmp_path / "1") == digests(tmp_path / "2")
    assert not (tmp_path / "2" / "checkpoint").exists()


LONG = (
    "--samplers=gwg,sl_path_auxiliary", "--config.experiment.chain_length=1000000",
    "--config.experiment.log_every_steps=10000", "--config.experiment.checkpoint_every_s=1", "--host_timeout_s=10",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_one_of_two_killed(tmp_path, victim):
    """The other one ends and says why; run again, both end with the results of one process."""
    run = Run(tmp_path / "2", flags_of_hosts(2), *LONG, cache=tmp_path / "c")
    run.wait_for_checkpoints()
    run.processes[victim].kill()
    ends = run.end(60)
    assert ends[victim][0] == -signal.SIGKILL
    code, output, error = ends[1 - victim]
    assert code == -signal.SIGABRT and output == "" and "another task died" in error
    assert list((tmp_path / "2" / "checkpoint" / f"host-{victim}-of-2").glob("state-*.npz"))
    ends = Run(tmp_path / "2", flags_of_hosts(2), *LONG, cache=tmp_path / "c").end()
    assert [code for code, _, _ in ends] == [0, 0], ends
    ((code, _, error),) = Run(tmp_path / "1", ALONE, *LONG, cache=tmp_path / "c").end()
    assert code == 0, error
    assert digests(tmp_path / "1") == digests(tmp_path / "2")


@pytest.mark.slow
def test_all_told_to_stop(tmp_path):
    """As by a cluster that takes the machines back: every host saves and ends with exit code 75."""
    run = Run(tmp_path / "2", flags_of_hosts(2), *LONG, cache=tmp_path / "c")
    run.wait_for_checkpoints()
    for process in run.processes:
        process.terminate()
    for code, output, error in run.end(60):
        assert code == RESUME_ME and output == "" and "interrupted; the same command, run again, continues" in error
