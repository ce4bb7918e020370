"""Events files say what the records say, in TensorBoard's format, whatever interrupts the run."""

import dataclasses
import struct

import numpy as np
import pytest
from test_checkpoint import KIND, short_calls  # noqa: F401 (a fixture)
from test_run import SETTINGS, assert_equal, method, random_dataset

from sl_discs.experiment.checkpoint import Checkpoints
from sl_discs.experiment.events import EventsFile, masked_crc
from sl_discs.experiment.interruption import Interrupted, Notice
from sl_discs.experiment.monitor import Monitor
from sl_discs.experiment.run import run_methods


def crc32c(content):
    """Long division, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in content:
        for k in range(8):
            bit = (crc ^ byte >> k) & 1
            crc = crc >> 1 ^ bit * 0x82F63B78
    return crc ^ 0xFFFFFFFF


def mask(crc):
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32


def fields(data):
    """(number, content) of each field of a protocol buffer."""
    position = 0

    def varint():
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, varint()
            continue
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
        yield key >> 3, data[position : position + size]
        position += size


def read(folder):
    """step -> tag -> value from all files of a folder, as a reader that heeds restarts sees them."""
    found = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data, records = path.read_bytes(), []
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            payload = data[12 : 12 + length]
            sums = struct.unpack("<I", data[8:12]) + struct.unpack("<I", data[12 + length : 16 + length])
            assert sums == (mask(crc32c(data[:8])), mask(crc32c(payload)))
            records.append(dict(fields(payload)))
            data = data[16 + length :]
        assert records[0][3] == b"brain.Event:2"
        for event in records[1:]:
            assert struct.unpack("<d", event[1])[0] > 1.6e9
            if 7 in event:
                assert dict(fields(event[7])) == {1: 1}
                found = {step: scalars for step, scalars in found.items() if step < event[2]}
            else:
                values = [dict(fields(value)) for _, value in fields(event[5])]
                found[event[2]] = {value[1].decode(): struct.unpack("<f", value[2])[0] for value in values}
    return found


def test_checksums():
    assert crc32c(b"123456789") == 0xE3069283  # the check value that tables of CRCs list for CRC-32C
    for content in (b"", b"123456789", bytes(range(256)) * 3):
        assert masked_crc(content) == mask(crc32c(content))


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
    settings = dataclasses.replace(SETTINGS, instances_per_batch=2, checkpoint_every_s=0.0)

    def play(folder, checkpoints=None, tell=lambda name, steps: None):
        monitor = folder and Monitor(folder, "host 1 of 2")
        methods = [method("sl_gwg", K=20)]
        return run_methods("mis", dataset, 1.0001, methods, settings, tell, checkpoints, monitor)["sl_gwg"]

    record = play(tmp_path / "whole")
    assert_equal(record, play(None))
    notice, calls = Notice(), []

    def tell(name, steps):
        calls.append(steps)
        notice.given = len(calls) == 3

    with pytest.raises(Interrupted):
        play(tmp_path / "two", Checkpoints(tmp_path / "saved", KIND, 0.0, notice), tell)
    play(tmp_path / "two", Checkpoints(tmp_path / "saved", KIND, 0.0, Notice()))
    estimates = []
    for number, members in enumerate((slice(0, 2), slice(2, 3))):
        whole, two = (
            read(tmp_path / run / "sl_gwg" / "host-1-of-2" / f"batch-{number}-of-2") for run in ("whole", "two")
        )
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
