"""Several hosts: the results of one, and when one dies the others say so, save, and go on when run again."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from test_checkpoint import digests
from test_run import SETTINGS, assert_equal, method, random_dataset

from sl_discs.errors import InputError
from sl_discs.experiment import host_watch
from sl_discs.experiment.host_watch import BAD_INPUT, GOING, LEFT, STOPPING, Watch
from sl_discs.experiment.hosts import Hosts, connect
from sl_discs.experiment.interruption import RESUME_ME, Interrupted, Notice
from sl_discs.experiment.run import run_methods
from sl_discs.results.share import join_records, pack_records, unpack_records

ROOT = Path(__file__).parents[2]


class FakeBoard:
    """A board in this process."""

    def __init__(self):
        self.content = {}

    def put(self, name, content):
        self.content[name] = content

    def get(self, name):
        return self.content[name]

    def under(self, folder):
        found = dict(self.content)
        return {name.removeprefix(f"{folder}/"): found[name] for name in found if name.startswith(f"{folder}/")}


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
        connect(*arguments)
    with pytest.raises(InputError, match="--host_timeout_s is 0"):
        connect("node:1", 2, 0, host_timeout_s=0.0)


def test_one_host_without_flags_and_a_cluster(monkeypatch):
    for name in ("SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    assert connect() == connect("node:1", 1, 0) == Hosts()
    monkeypatch.setenv("SLURM_NTASKS", "4")  # an allocation of four tasks, of which none was started
    assert connect() == Hosts()


def test_shares_joined_are_the_whole():
    dataset = random_dataset(5)
    methods = [method("sl_gwg", K=20)]

    def play(share):
        graphs, index = ([getattr(dataset, field)[k] for k in share] for field in ("graphs", "index"))
        part = dataclasses.replace(dataset, graphs=graphs, index=index)
        records = run_methods("mis", part, 1.0001, methods, SETTINGS, lambda name, steps: None)
        return records | {"the same again": records["sl_gwg"]}

    whole = play(range(5))
    joined = join_records([unpack_records(pack_records(play(Hosts(k, 2).share(5)))) for k in range(2)])
    assert list(joined) == list(whole)
    for name, record in whole.items():
        assert_equal(record, joined[name])
        for one, other in zip(record.instances, joined[name].instances, strict=True):
            assert (one.feasible, one.reference) == (other.feasible, other.reference)
            assert one.solution.dtype == other.solution.dtype
    steps = [record.chain_steps_per_s * record.run_s for record in (whole["sl_gwg"], joined["sl_gwg"])]
    assert steps[0] == pytest.approx(steps[1])


def test_a_message_of_any_size_reaches_host_0(tmp_path):
    board = FakeBoard()
    sent = [np.random.default_rng(k).bytes(size) for k, size in enumerate((10, 3 << 20, 1 << 20))]
    got = [None] * 3

    def play(k):
        hosts, notice = Hosts(k, 3, board), Notice()
        got[k] = hosts.gather(sent[k], notice, tmp_path)
        hosts.agree_on_end(notice, tmp_path)

    threads = [threading.Thread(target=play, args=(k,)) for k in (2, 1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert got == [sent, None, None]


def test_host_0_does_not_wait_for_the_dead(tmp_path):
    notice = Notice()
    notice.given, notice.reason = True, "host 1 of 2 is gone"
    with pytest.raises(Interrupted, match=r"host 1 of 2 is gone; the same command, run again, goes on from"):
        Hosts(0, 2, FakeBoard()).gather(b"mine", notice, tmp_path)


@pytest.fixture
def watched(monkeypatch):
    """A watch of host 0 of 3, whose notice can be read and whose clock is given."""
    monkeypatch.setattr(Watch, "_end", lambda self: None)
    monkeypatch.setattr(host_watch, "_GRACE_S", 0.0)
    watch, notice = Watch(0, 3, FakeBoard(), 10.0, "node:1"), Notice()
    watch.attend(notice)
    begin = time.monotonic()

    def tell(host, text, after=0.0):
        watch.board.put(f"sign/{host}", text.encode())
        watch.look(begin + after)

    return watch, notice, tell


def test_a_silent_host_is_gone(watched):
    watch, notice, tell = watched
    for second in range(30):
        tell(1, f"{GOING}\n{second}\n", second)
        tell(2, f"{GOING}\n{min(second, 15)}\n", second)
        assert notice.given == (second > 25)
    assert notice.reason == watch.reason == "host 2 of 3 is gone: no sign of life for 10 s"
    assert watch.code == RESUME_ME


def test_what_the_others_say(watched):
    watch, notice, tell = watched
    tell(1, f"{LEFT}\n1\n")
    tell(2, f"{GOING}\n1\n", 9.0)
    tell(1, f"{LEFT}\n1\n", 18.0)
    assert not notice.given
    tell(2, f"{BAD_INPUT}\n2\nno such file", 18.5)
    assert notice.given and notice.reason == "error: host 2 of 3: no such file" and watch.code == 2
    tell(2, f"{STOPPING}\n3\n", 19.0)
    assert watch.code == 2


def test_checkpoints_of_another_number_of_hosts_are_refused(tmp_path):
    assert Hosts().checkpoint_folder(tmp_path) == tmp_path / "checkpoint"
    folder = Hosts(1, 4).checkpoint_folder(tmp_path)
    folder.mkdir(parents=True)
    assert Hosts(1, 4).checkpoint_folder(tmp_path) == folder
    for other in (Hosts(), Hosts(1, 2)):
        with pytest.raises(InputError, match=r"left by a run on 4 host\(s\)"):
            other.checkpoint_folder(tmp_path)


PIPES = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


class Run:
    """Processes of the command on a few small graphs, one a host."""

    def __init__(self, folder, count, *more, cache):
        command = [
            sys.executable, "-m", "sl_discs.main_sampling", "--config=configs/experiment/maxcut/ba.py",
            "--model_config=configs/model/maxcut_config.py", "--model_config.graph_type=ba",
            "--model_config.cfg_str=r-ba-4-n-16-20", f"--config.experiment.save_root={folder}",
            "--config.experiment.num_instances=5", "--config.experiment.batch_size=4", *more,
        ]  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        environment = dict(os.environ, JAX_PLATFORMS="cpu", SL_DISCS_CACHE=str(cache))
        self.processes = []
        for host in range(count):
            flags = [f"--coordinator={address}", f"--num_hosts={count}", f"--host={host}"] if count > 1 else []
            self.processes.append(subprocess.Popen(command + flags, cwd=ROOT, env=environment, **PIPES))

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


SHORT = ("--samplers=gwg", "--config.experiment.chain_length=200")


def test_one_or_two_processes(tmp_path):
    """The same arrays, bit for bit, written and told by host 0 alone."""
    ((code, output, error),) = Run(tmp_path / "1", 1, *SHORT, cache=tmp_path / "c").end()
    assert code == 0, error
    ends = Run(tmp_path / "2", 2, *SHORT, cache=tmp_path / "c").end()
    assert [code for code, _, _ in ends] == [0, 0], ends
    assert "5 instances" in output and "5 instances" in ends[0][1] and "2 hosts" in ends[0][1] and ends[1][1] == ""
    assert digests(tmp_path / "1") == digests(tmp_path / "2")
    assert not (tmp_path / "2" / "checkpoint").exists()


LONG = (
    "--samplers=gwg,sl_path_auxiliary", "--config.experiment.chain_length=2000000",
    "--config.experiment.log_every_steps=10000", "--config.experiment.checkpoint_every_s=1",
)  # fmt: skip
# A dead host is noticed within --host_timeout_s and the call at work is played to its end.
TIMEOUT_S, STATED_S = 10, 60


@pytest.mark.slow
@pytest.mark.parametrize("victim", [2, 0])
def test_one_of_four_killed(tmp_path, victim):
    """The others end within the stated time and say why; run again, all four end with the results of one process."""
    ((code, _, error),) = Run(tmp_path / "1", 1, *LONG, cache=tmp_path / "c").end(1800)
    assert code == 0, error
    four = (*LONG, f"--host_timeout_s={TIMEOUT_S}")
    run = Run(tmp_path / "4", 4, *four, cache=tmp_path / "c")
    folders = [tmp_path / "4" / "checkpoint" / f"host-{k}-of-4" for k in range(4)]
    while not all(list(folder.glob("state-*.npz")) for folder in folders):
        assert all(process.poll() is None for process in run.processes)
        time.sleep(0.2)
    run.processes[victim].kill()
    begin = time.monotonic()
    ends = run.end()
    assert time.monotonic() - begin < STATED_S
    for k, (code, output, error) in enumerate(ends):
        if k == victim:
            assert code == -signal.SIGKILL
            continue
        assert code == RESUME_ME and output == "", error
        last = error.strip().splitlines()[-1]
        assert f"host {victim} of 4 is gone" in last and "run again, goes on from" in last
    ends = Run(tmp_path / "4", 4, *four, cache=tmp_path / "c").end(1800)
    assert [code for code, _, _ in ends] == [0] * 4, ends
    assert digests(tmp_path / "4") == digests(tmp_path / "1")


@pytest.mark.slow
def test_one_of_two_told_to_stop(tmp_path):
    """SIGTERM at one host ends both with exit code 75."""
    run = Run(tmp_path / "2", 2, *LONG, cache=tmp_path / "c")
    while not list((tmp_path / "2").glob("checkpoint/host-1-of-2/state-*.npz")):
        assert all(process.poll() is None for process in run.processes)
        time.sleep(0.2)
    run.processes[1].terminate()
    ends = run.end()
    assert [code for code, _, _ in ends] == [RESUME_ME] * 2, ends
    assert "host 1 of 2 was told to stop; the same command" in ends[0][2]
