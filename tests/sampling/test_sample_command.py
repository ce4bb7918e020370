"""The command, as a newcomer runs it: what it prints and saves, its exit codes, and how it
refuses.
"""

import os
import re
import signal

import numpy as np
import pytest

from sl_discs import Samples
from sl_discs.commands import sample
from sl_discs.instances.archive import write_forms
from sl_discs.instances.form import QuadraticForm


def run(capsys, *arguments):
    code = sample.main(["sample", *map(str, arguments)])
    return code, *capsys.readouterr()


@pytest.fixture
def ring(tmp_path):
    """Twenty spins, more than `auto` enumerates."""
    path = tmp_path / "ring.coo"
    path.write_text("# vartype=SPIN\n" + "".join(f"{k} {(k + 1) % 20} -0.3\n" for k in range(20)))
    return path


def test_the_table_and_the_verdict(tmp_path, capsys):
    """Two pairs of spins, one of them with a field: log Z = 2 log(2 cosh) + log of a sum of
    four.
    """
    path = tmp_path / "pairs.coo"
    path.write_text("# vartype=SPIN\n0 1 -1.25\n2 3 0.5\n2 2 0.75\n")
    saved, picture = (tmp_path / f"run.{suffix}" for suffix in ("npz", "png"))
    flags = "--temperature=0.8", "--draws=2000", "--top=3", "--seed=4"
    code, out, err = run(capsys, path, *flags, f"--save={saved}", f"--plot={picture}")
    assert code == 0, err
    beta = 1 / 0.8
    second = np.array([-0.5 * s * t - 0.75 * s for s in (-1, 1) for t in (-1, 1)])
    expected = np.log(4 * np.cosh(1.25 * beta)) + np.log(np.exp(beta * second).sum())
    loaded = Samples.load(saved)
    assert loaded.log_z.mean == pytest.approx(expected, abs=1e-6)
    assert list(loaded.labels) == [0, 1, 2, 3] and loaded.seed == 4 and len(loaded) == 2000
    shown = np.array(re.findall(r"-?\d+\.\d+", out), float)
    for known in (expected, loaded.mean().mean):
        assert np.abs(shown - known).min() < 1e-4 * abs(known)
    assert out.splitlines()[-1] == "pairs: reliable" and picture.stat().st_size > 10_000


def test_too_few_draws_are_called_so(ring, capsys):
    code, out, _ = run(capsys, ring, "--temperature=2,0.5", "--draws=16")
    assert code == 0 and "temperature 2, 0.5" in out and "heat capacity" in out
    code, out, _ = run(
        capsys, ring, "--temperature=1", "--draws=16", "--method=chain", "--field=scan=sequential"
    )
    assert code == 1 and "by chain: sampler gibbs" in out
    assert out.splitlines()[-1].startswith("ring: NOT reliable: ")
    assert "times as many" in out.splitlines()[-1]


def test_several_problems_have_files_of_their_own(tmp_path, capsys):
    """An archive of x1 + x2 - 2*3 x1 x2 and 5 x1, maximised."""
    forms = [([1, 1], [(0, 1)], [-6]), ([5], [], [])]
    path = tmp_path / "models.npz"
    write_forms(path, [QuadraticForm.from_arrays("m", *arrays, maximise=True) for arrays in forms])
    code, out, err = run(
        capsys, path, "--temperature=1", "--draws=8", f"--save={tmp_path / 'd.csv'}"
    )
    assert code == 0, err
    rows = [(tmp_path / f"d-{k}.csv").read_text().splitlines() for k in (1, 2)]
    assert [len(one) for one in rows] == [3, 2] and rows[1][1].startswith("0,0.9933")
    assert len(re.findall(": reliable$", out, re.MULTILINE)) == 2


@pytest.mark.usefixtures("in_foreground")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_its_draws(ring, tmp_path, capsys, monkeypatch, sent):
    real = sample.drawn_from

    def interrupted(*arguments, **more):
        os.kill(os.getpid(), sent)
        return real(*arguments, **more)

    monkeypatch.setattr(sample, "drawn_from", interrupted)
    before = signal.getsignal(sent)
    saved = tmp_path / "d.npz"
    flags = "--temperature=1", "--draws=1000000000", "--method=chain"
    code, out, err = run(capsys, ring, *flags, f"--save={saved}")
    assert code == 128 + sent, err
    assert signal.getsignal(sent) is before
    assert "the run was interrupted" in out.splitlines()[-1]
    loaded = Samples.load(saved)
    assert loaded.interrupted and 8 <= len(loaded) < 10**9
