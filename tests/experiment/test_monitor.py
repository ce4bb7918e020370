"""Events files say what the records say, in TensorBoard's format, whatever interrupts the run."""

import dataclasses
import importlib.util
import struct

import numpy as np
import pytest
from test_checkpoint import KIND, short_calls  # noqa: F401 (a fixture)
from test_run import SETTINGS, assert_equal, method, random_dataset

from sl_discs.errors import InputError
from sl_discs.experiment.checkpoint import Checkpoints, Interrupted, Notice
from sl_discs.experiment.monitor import EventsFile, check_tensorboardx
from sl_discs.experiment.run import run_sampler

pytest.importorskip("tensorboardX", reason="tensorboardX is not installed: pip install -e '.[run]' in the clone")

from tensorboardX.proto.event_pb2 import Event, SessionLog


def records(path):
    """The events of a file, whose checksums are the library's affair."""
    data = path.read_bytes()
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        payload, data = data[12 : 12 + length], data[16 + length :]
        yield Event.FromString(payload)


def read(folder):
    """step -> tag -> value from all files of a folder, as a reader that heeds restarts sees them."""
    found = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        version, *events = records(path)
        assert version.file_version == "brain.Event:2"
        for event in events:
            assert event.wall_time > 1.6e9
            if event.HasField("session_log"):
                assert event.session_log.status == SessionLog.START
                found = {step: scalars for step, scalars in found.items() if step < event.step}
            else:
                found[event.step] = {value.tag: value.simple_value for value in event.summary.value}
    return found


def test_tensorboardx_absent(monkeypatch):
    check_tensorboardx()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install -e '.\[run\]'"):
        check_tensorboardx()


def test_numbers_of_any_size(tmp_path):
    rows = [
        (step, {"a": value, "b/c": -value}) for step, value in ((0, 0.0), (127, 1.5), (128, 2.0**100), (2**40, 1e-30))
    ]
    file = EventsFile(tmp_path)
    file.add(rows[:2])
    file.add(rows[2:])
    assert read(tmp_path) == {
        step: {tag: np.float32(value) for tag, value in scalars.items()} for step, scalars in rows
    }


def test_curves_are_those_of_the_record(tmp_path, short_calls):  # noqa: F811
    """Three graphs in batches of two and one; an interrupted run has the curves of the whole; same bits."""
    dataset = random_dataset(3)
    settings = dataclasses.replace(SETTINGS, instances_per_batch=2, checkpoint_every_s=0.0, engine="cpu")

    def play(folder, checkpoints=None, tell=lambda steps: None):
        return run_sampler(dataset, 1.0001, method("sl_gwg", K=20), settings, tell, checkpoints, folder)

    record = play(tmp_path / "whole")
    assert_equal(record, play(None))
    notice, calls = Notice(), []

    def tell(steps):
        calls.append(steps)
        notice.given = len(calls) == 3

    with pytest.raises(Interrupted):
        play(tmp_path / "two", Checkpoints(tmp_path / "saved", KIND, 0.0, notice), tell)
    play(tmp_path / "two", Checkpoints(tmp_path / "saved", KIND, 0.0, Notice()))
    estimates = []
    for number, members in enumerate((slice(0, 2), slice(2, 3))):
        whole, two = (read(tmp_path / run / f"batch-{number}-of-2") for run in ("whole", "two"))
        assert list(whole) == list(two) == [50, 100, 150, 200, 250]
        for k, (step, scalars) in enumerate(whole.items()):
            assert scalars.pop("chain_steps_per_s") > 0 and two[step].pop("chain_steps_per_s") > 0
            assert scalars == two[step]
            assert scalars["temperature"] == settings.temperatures()[step - 1]
            for tag, field in (("objective", "trajectory"), ("acceptance", "acceptance"), ("radius", "hops")):
                assert scalars[tag] == pytest.approx(getattr(record, field)[k, members].mean(), rel=1e-6)
            assert 0 < scalars["tilt_contraction"] <= 1
            estimates.append(scalars.get("posterior_contraction"))
        assert whole[250]["tilt_contraction"] > whole[50]["tilt_contraction"]
    estimates = [estimate for estimate in estimates if estimate is not None]
    assert estimates and all(0 < estimate <= 1 for estimate in estimates)
