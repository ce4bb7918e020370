"""The files of a run: strict JSON, DISCS's pickle without our package, round trips, and no
half-written file ever.
"""

import dataclasses
import json
import os
import pickle
import pickletools
from pathlib import Path

import numpy as np
import pytest
import yaml
from programs import python
from records import make_record

from sl_discs.experiment.record import SECONDS, Spread, best_values
from sl_discs.experiment.results import read_results, write_results
from sl_discs.support.errors import InputError
from sl_discs.support.files import check_writable
from sl_discs.support.locks import only_run_in


def load_strictly(path):
    """What JSON alone has: NaN and infinity are none of it."""
    return json.loads(path.read_text(), parse_constant=lambda constant: pytest.fail(constant))


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_json_has_the_agreed_keys_and_values(tmp_path):
    record = make_record(references=[62.0, None, 61.0, 60.0])
    content = load_strictly(write_results(record, tmp_path)["results.json"])
    assert set(content) == {
        *("dataset", "source", "source_detail", "config", "seed", "versions", "device", "engine"),
        *("num_chains", "samplers", "paired"),
    }
    assert content["config"]["sampler"] == {"radius": 0.5, "sizes": [1, 2]}
    sampler, instances = content["samplers"]["gwg"], record.samplers["gwg"].instances
    assert set(sampler) == {
        *(
            "instances",
            "final_is",
            "mean",
            "std",
            "acceptance",
            "hops",
            "chain_steps_per_s",
            *SECONDS,
        )
    }
    for row, instance in zip(sampler["instances"], instances, strict=True):
        assert row == {
            name: value
            for name, value in dataclasses.asdict(instance).items()
            if name not in ("solution", "draws")
        }
    assert sampler["std"] == pytest.approx(np.std([instance.best for instance in instances]))
    assert set(content["paired"]) == {"sl_gwg - gwg"}
    assert set(content["paired"]["sl_gwg - gwg"]) == {"mean", "se", "n"}


def test_json_is_read_again(tmp_path):
    record = make_record()
    found = read_results(write_results(record, tmp_path)["results.json"])
    assert found.engine == record.engine and list(found.samplers) == list(record.samplers)
    for one, sampler in zip(found.samplers.values(), record.samplers.values(), strict=True):
        assert one.best == {instance.name: instance.best for instance in sampler.instances}
        assert one.spread == Spread.of(best_values(sampler))
        assert one.chain_steps_per_s == sampler.chain_steps_per_s


def test_json_holds_none_where_a_number_is_not_finite(tmp_path):
    record = make_record(num_instances=1)
    record.samplers["gwg"] = dataclasses.replace(
        record.samplers["gwg"], compile_s=float("nan"), run_s=float("inf")
    )
    content = load_strictly(write_results(record, tmp_path)["results.json"])
    broken = content["samplers"]["gwg"]
    assert broken["compile_s"] is None
    assert broken["run_s"] is None
    assert content["paired"]["sl_gwg - gwg"]["se"] is None


def test_one_sampler_lies_where_discs_puts_it_and_several_in_folders(tmp_path):
    """No pickles of results that are replaced stay, but files of others do."""
    (tmp_path / "sl_gwg").mkdir()
    (tmp_path / "sl_gwg" / "notes.txt").write_text("mine")
    several = ("gwg", "sl_gwg", "dmala")
    for names in (several, ("gwg",), several, ("gwg", "dmala")):
        paths = write_results(make_record(names), tmp_path)
        pickles = [f"{name}/results.pkl" for name in names] if len(names) > 1 else ["results.pkl"]
        common = ["config.yaml", "results.json", "solutions.npz", "trajectory.npz"]
        assert sorted(paths) == sorted([*common, *pickles])
        assert files_in(tmp_path) == sorted([*paths, "sl_gwg/notes.txt"])


@pytest.mark.parametrize("name", ["../victim", "{victim}", "linked", "gwg/../../victim"])
def test_names_in_replaced_results_lead_nowhere_else(tmp_path, name):
    victim, folder = tmp_path / "victim", tmp_path / "out"
    victim.mkdir()
    (victim / "results.pkl").touch()
    write_results(make_record(("gwg", "sl_gwg")), folder)
    if name == "linked":  # a known sampler, whose folder is somewhere else
        name = "dmala"
        (folder / name).symlink_to(victim)
    named = {name.format(victim=victim): {}, "gwg": {}}
    (folder / "results.json").write_text(json.dumps({"samplers": named}))
    write_results(make_record(("gwg",)), folder)
    assert (victim / "results.pkl").exists() and not (folder / "gwg").exists()


def test_the_pickle_names_numpy_only_and_loads_without_this_package(tmp_path):
    path = write_results(make_record(("gwg",)), tmp_path)["results.pkl"]
    operations = list(pickletools.genops(path.read_bytes()))
    modules = {argument for _, argument, _ in operations if isinstance(argument, str)}
    assert not any("sl_discs" in text or "jax" in text for text in modules)
    imports = [
        i for i, (code, _, _) in enumerate(operations) if code.name in ("GLOBAL", "STACK_GLOBAL")
    ]
    strings = [[a for _, a, _ in operations[:i] if isinstance(a, str)] for i in imports]
    assert imports
    assert all(any(text.split(".")[0] == "numpy" for text in before[-3:]) for before in strings)
    code = f"import pickle, sys; pickle.load(open({str(path)!r}, 'rb')); assert 'sl_discs' not in "
    python("-c", f"{code}sys.modules", cwd=tmp_path)


@pytest.mark.parametrize(
    ("dataset", "references", "divisors"),
    [
        ("mis/x", [60.0, 61.0, 62.0, 63.0], [1.0, 1.0, 1.0, 1.0]),
        ("maxcut/x", [60.0, 61.0, 62.0, 63.0], [60.0, 61.0, 62.0, 63.0]),
        ("maxclique/x", [60.0, None, 62.0, 63.0], [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_the_pickle_has_the_numbers_of_discs(tmp_path, dataset, references, divisors):
    record = make_record(("gwg",), dataset=dataset, references=references)
    sampler = record.samplers["gwg"]
    with write_results(record, tmp_path)["results.pkl"].open("rb") as file:
        content = pickle.load(file)
    np.testing.assert_array_equal(content["trajectory"], sampler.trajectory / divisors)
    np.testing.assert_array_equal(content["best_ratio"], content["trajectory"][-1])
    assert content["best_ratio_mean"] == pytest.approx(np.mean(content["best_ratio"]))
    assert 2 * content["running_time"] == sampler.run_s
    for row, instance in zip(content["best_samples"], sampler.instances, strict=True):
        np.testing.assert_array_equal(row[: len(instance.solution)], instance.solution)
        assert not row[len(instance.solution) :].any()


def test_arrays_and_config_come_back(tmp_path):
    record = make_record()
    paths = write_results(record, tmp_path)
    sampler = record.samplers["sl_gwg"]
    fields = ("trajectory", "acceptance", "hops", "temperature")
    expected = {"logged_steps": [100, 200, 300, 400, 500]}
    expected |= {f"sl_gwg/{field}": getattr(sampler, field) for field in fields}
    with np.load(paths["trajectory.npz"], allow_pickle=False) as arrays:
        for name, array in expected.items():
            np.testing.assert_array_equal(arrays[name], array)
    with np.load(paths["solutions.npz"], allow_pickle=False) as arrays:
        flat, ptr = arrays["sl_gwg/solutions"], arrays["ptr"]
        assert flat.dtype == np.int8
        for g, instance in enumerate(record.samplers["sl_gwg"].instances):
            assert arrays["names"][g] == instance.name
            np.testing.assert_array_equal(flat[ptr[g] : ptr[g + 1]], instance.solution)
    config = yaml.safe_load(paths["config.yaml"].read_text())
    assert config == record.config | {"sampler": {"radius": 0.5, "sizes": [1, 2]}}


@pytest.mark.parametrize("fails", ["fsync", "replace"])
@pytest.mark.parametrize("successes", range(5))
def test_a_failure_leaves_nothing_that_looks_complete(tmp_path, monkeypatch, successes, fails):
    """A full disk leaves the results of before as they were; whatever ends the moves, no old
    results.json stays.
    """
    write_results(make_record(("gwg",), level=50.0), tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}
    function, calls = getattr(os, fails), []

    def fails_later(*arguments):
        calls.append(arguments)
        if len(calls) > successes:
            raise OSError(28, "No space left on device")
        function(*arguments)

    monkeypatch.setattr(os, fails, fails_later)
    with pytest.raises(InputError):
        write_results(make_record(("gwg",), level=70.0), tmp_path)
    kept = set(before) if fails == "fsync" else set(before) - {"results.json"}
    assert set(files_in(tmp_path)) == kept
    changed = [name for name in kept if (tmp_path / name).read_bytes() != before[name]]
    assert len(changed) <= (0 if fails == "fsync" else successes)


def test_what_a_killed_process_left_is_removed(tmp_path):
    theirs = [tmp_path / "gwg" / "notes.tmp", tmp_path / f"{'0' * 32}.tmp"]
    killed = [
        tmp_path / f".{'0' * 32}.tmp",
        tmp_path / "gwg" / f".{'a' * 32}.tmp",
        tmp_path / f".probe.{'1' * 32}.tmp",
    ]
    for path in theirs + killed:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    paths = write_results(make_record(), tmp_path)
    assert files_in(tmp_path) == sorted([*paths, "gwg/notes.tmp", f"{'0' * 32}.tmp"])
    killed[0].touch()
    with only_run_in(tmp_path):
        assert not killed[0].exists()


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    folder = check_writable(tmp_path / "a" / "b")
    assert folder.is_dir() and not list(folder.iterdir())
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError):
            check_writable(folder)
    if Path("/proc/self").is_dir():  # refuses even root
        for name in ("self", "self/results"):
            with pytest.raises(InputError):
                check_writable(f"/proc/{name}")


def test_a_folder_that_takes_no_bytes_is_refused(tmp_path):
    """As on a full disk, which still makes empty files."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(InputError):
            check_writable(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())
