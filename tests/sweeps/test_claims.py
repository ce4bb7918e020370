"""One holder, however many would like to be it."""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.errors import InputError
from sl_discs.sweeps import claims
from sl_discs.sweeps.processes import is_running, this_machine

ROOT = Path(__file__).parents[2]


def dead_process():
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    return child.pid


def write_claim(folder, number, **content):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{number}.json"
    path.write_text(json.dumps({"host": "here", "pid": 1, "since": 0, "machine": "other"} | content))
    return path


def silent_for(path, seconds):
    past = time.time() - seconds
    os.utime(path, (past, past))


def test_one_of_many_threads_wins_again_and_again(tmp_path):
    """Sixteen takers, forty rounds, each after the end of the last: sixteen times forty tries, forty claims."""
    with ThreadPoolExecutor(16) as pool:
        for number in range(1, 41):
            barrier = threading.Barrier(16)

            def try_it(_, barrier=barrier):
                barrier.wait()
                return claims.take(tmp_path, 60.0)

            won = [claim for claim in pool.map(try_it, range(16)) if claim is not None]
            assert [claim.number for claim in won] == [number]
            won[0].end("failed")


TAKER = """
import sys, time
from pathlib import Path
from sl_discs.sweeps import claims
folder, gate = Path(sys.argv[1]), Path(sys.argv[2])
print("ready", flush=True)
while not gate.exists():
    pass
won = [folder / str(k) for k in range(60) if claims.take(folder / str(k), 60.0)]
print(*(path.name for path in won), flush=True)
time.sleep(60)
"""


def test_one_of_several_processes_takes_each_stale_claim(tmp_path):
    """Sixty claims of dead holders, half by process and half by silence, and five processes that start at once."""
    dead = dead_process()
    for k in range(60):
        path = write_claim(tmp_path / str(k), 1, machine=this_machine() if k % 2 else "other", pid=dead)
        silent_for(path, 0 if k % 2 else 100)
    command = [sys.executable, "-c", TAKER, str(tmp_path), str(tmp_path / "gate")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    takers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(5)]
    try:
        assert all(taker.stdout.readline() == "ready\n" for taker in takers)
        (tmp_path / "gate").touch()
        won = [taker.stdout.readline().split() for taker in takers]
    finally:
        for taker in takers:
            taker.kill()
            taker.communicate()
    assert sorted(int(name) for names in won for name in names) == list(range(60))
    assert all(
        sorted(path.name for path in (tmp_path / str(k)).glob("*.json")) == ["1.json", "2.json"] for k in range(60)
    )


@given(st.lists(st.tuples(st.sampled_from(["look", "go on", "end"]), st.integers(0, 3)), max_size=40))
@settings(deadline=None, max_examples=150)
def test_no_order_of_steps_makes_two_holders(tmp_path_factory, steps):
    """Four takers look, create and end in any order; at most one holds, and stale looks win nothing."""
    folder = tmp_path_factory.mktemp("claims")
    looked, holder = {}, None
    for step, who in steps:
        if step == "look" and holder != who:
            seen = claims.latest(folder)
            if not claims.is_held(folder, seen, 60.0):
                looked[who] = seen
        elif step == "go on" and who in looked:
            claim = claims.take_after(folder, looked.pop(who))
            if claim is not None:
                assert holder is None
                holder, held = who, claim
        elif step == "end" and holder == who:
            held.end("done")
            holder = None
    assert claims.is_held(folder, claims.latest(folder), 60.0) == (holder is not None)


def test_who_counts_as_alive(tmp_path):
    cases = {
        "fresh elsewhere": ({}, 0, True),
        "silent elsewhere": ({}, 100, False),
        "dead here": ({"machine": this_machine(), "pid": dead_process()}, 0, False),
        "alive here": ({"machine": this_machine(), "pid": os.getpid()}, 0, True),
        "silent here": ({"machine": this_machine(), "pid": os.getpid()}, 100, False),
        "ended": ({"outcome": "done"}, 0, False),
    }
    for name, (content, silence, held) in cases.items():
        path = write_claim(tmp_path / name, 3, **content)
        silent_for(path, silence)
        seen = claims.latest(tmp_path / name)
        assert claims.is_held(tmp_path / name, seen, 60.0) is held, name
        assert (claims.take(tmp_path / name, 60.0) is None) is held, name


def test_a_claim_that_is_just_being_written_is_held(tmp_path):
    tmp_path.joinpath("1.json").touch()
    assert claims.take(tmp_path, 60.0) is None
    silent_for(tmp_path / "1.json", 100)
    assert claims.take(tmp_path, 60.0).number == 2


def test_a_process_that_was_not_waited_for_is_dead():
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    assert is_running(child.pid) and is_running(os.getpid())
    child.kill()
    end = time.monotonic() + 30
    while is_running(child.pid):
        assert time.monotonic() < end
    child.communicate()
    assert not is_running(child.pid)


def test_signs_of_life_and_their_loss(tmp_path):
    claim = claims.take(tmp_path, 60.0)
    silent_for(tmp_path / "1.json", 50)
    lost = threading.Event()
    with claims.HeartBeat(claim, 0.05, lost.set) as heart:
        time.sleep(0.5)
        assert claims.silence_s(tmp_path, claims.latest(tmp_path)) < 10
        assert not lost.is_set()
        write_claim(tmp_path, 2)
        assert lost.wait(30) and heart.lost
    claim.end("lost")
    assert claims.latest(tmp_path).number == 2 and claims.latest(tmp_path).outcome is None


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot claim a run"):
        claims.take(tmp_path / "file" / "attempts", 60.0)
