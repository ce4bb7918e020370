"""The code of the README and of the site runs, and the site builds; docs/check.py has the prose."""

import itertools
import json
import math
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from programs import call, python

from sl_discs.instances.formats import FORMATS, read_instances
from sl_discs.samplers import registry
from sl_discs.testing import conformance

ROOT = Path(__file__).parents[1]


def code_of(page: str) -> list[str]:
    """The Python blocks of a page, with the files that they show."""
    blocks = re.findall(
        r"```(?:python| \{ \.python \})\n(.*?)```", (ROOT / page).read_text(), re.DOTALL
    )
    shown = r'--8<-- "(.*)"\n'
    return [re.sub(shown, lambda file: (ROOT / file[1]).read_text(), block) for block in blocks]


def texts_of(page: str) -> list[str]:
    """The blocks of a page that show what is printed."""
    return re.findall(r"```text\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_the_example_of_the_readme_prints_what_is_shown(capsys):
    (code,), (_, shown) = code_of("README.md"), texts_of("README.md")
    names = {}
    exec(code, names)
    assert capsys.readouterr().out == shown
    graph, (left, _) = nx.random_geometric_graph(60, 0.22, seed=4), names["result"].partition
    assert names["result"].best_value == sum((u in left) != (v in left) for u, v in graph.edges)


def test_the_qubo_from_python_prints_what_is_shown(capsys):
    [code] = [code for code in code_of("docs/own_problem.md") if "sl_discs.qubo(" in code]
    exec(code, {})
    page = (ROOT / "docs/own_problem.md").read_text()
    assert f"prints `{capsys.readouterr().out.strip()}`.\n" in page


@pytest.mark.slow
@pytest.mark.skipif(find_spec("discs") is None, reason="needs a checkout of DISCS on PYTHONPATH")
def test_the_commands_of_the_readme_print_in_discs_what_is_shown(tmp_path):
    """All but the installation; the cut that the short run finds differs by processor, for the same
    reason.
    """
    shown = texts_of("README.md")[0]
    block = (ROOT / "README.md").read_text().partition('[discs]"\n')[2].partition("```")[0]
    commands = block.replace("sl-discs ", f"{sys.executable} -m sl_discs ")
    done = call("bash", "-ec", commands, cwd=tmp_path, path=[ROOT, *sys.path])
    assert done.returncode == 0, done.stderr
    printed = re.sub(r"\d+\.0000", "", done.stdout)
    for part in re.sub(r"\d+\.0000", "", shown).replace("\n", "...").split("..."):
        assert part.strip("; )") in printed


def test_each_format_of_files_has_an_example_that_is_read(tmp_path):
    """Of all formats but our archives, which are no text."""
    examples = re.findall(
        r'```text title="(.*?)"\n(.*?)```', (ROOT / "docs/files.md").read_text(), re.DOTALL
    )
    found = set()
    for name, text in examples:
        if not name.endswith(".coo") or find_spec("dimod"):
            (tmp_path / name).write_text(text)
            found |= {instance.format for instance in read_instances(tmp_path / name)}
    assert found >= set(FORMATS) - {"npz", "coo", "mqlib"}


@pytest.mark.slow
def test_the_examples_with_blackjax_draw_from_the_log_density():
    """Mean numbers of ones, enumerated: 1.459. Standard errors: .016 and .035; localized draws also
    have a bias.
    """
    pytest.importorskip("blackjax", reason="needs the extra blackjax")
    names = {}
    for code in code_of("docs/blackjax.md"):
        exec(code, names)
    states = np.array(list(itertools.product((0.0, 1.0), repeat=6)), np.float32)
    law = np.exp([float(names["logdensity_fn"](state)) for state in states])
    exact = law @ states.sum(axis=1) / law.sum()
    assert abs(names["positions"][:, 1_000:].sum(axis=2).mean() - exact) < 0.1
    assert abs(names["draws"].sum(axis=1).mean() - exact) < 0.3


def test_the_experiment_from_python_has_a_row_for_each_sampler_and_instance():
    code, _ = code_of("docs/experiments.md")
    names = {}
    exec(code, names)
    frame = names["frame"]
    assert frame.feasible.all() and frame.groupby("sampler").size().tolist() == [4, 4]


@pytest.mark.slow
def test_the_log_density_on_a_ring_has_its_log_z():
    """An even number of walls can be placed on the 24 bonds in any way, for two states each; by 6
    standard errors.
    """
    (code,) = code_of("docs/log_density.md")
    names = {}
    exec(code, names)
    walls = np.arange(0, 25, 2)
    ways = np.array([2.0 * math.comb(24, k) for k in walls])
    weights = ways * np.exp(-0.5 * walls - walls**2 / 24)
    log_z, error = names["samples"].log_z
    assert names["samples"].reliable and abs(log_z - np.log(weights.sum())) < 6 * error < 0.5


@pytest.mark.usefixtures("own_samplers")
def test_commands_that_import_the_sampler_of_ones_own_do_not_check_it(monkeypatch):
    monkeypatch.setattr(conformance, "check_case", lambda *given, **options: pytest.fail("checked"))
    exec(code_of("docs/own_sampler.md")[0], {"__name__": "one_or_two"})
    assert "one_or_two" in registry.known_samplers()


@pytest.mark.slow
@pytest.mark.usefixtures("own_samplers")
def test_the_sampler_of_ones_own_conforms_as_printed():
    """`check_sampler` is in the page's code."""
    names = {"__name__": "__main__"}
    sampler, use, adaptive = code_of("docs/own_sampler.md")
    exec(sampler, names)
    exec(adaptive, {"__name__": "__main__"})
    with pytest.raises(conformance.ConformanceError):
        exec(
            sampler.replace("< acceptance", "< 1").replace('"one_or_two"', '"wrong"'),
            {"__name__": "__main__"},
        )
    exec(use, names)
    assert names["best"].best_value >= 25


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="needs the extra docs")
@pytest.mark.parametrize("run_examples", ["false", pytest.param("true", marks=pytest.mark.slow)])
def test_the_site_builds_without_a_warning(run_examples, tmp_path):
    assert find_spec("material") and find_spec("mkdocstrings"), "install the extra docs"
    variables = {"SL_DISCS_RUN_EXAMPLES": run_examples, "NO_MKDOCS_2_WARNING": "1"}
    python("-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path, **variables)
    assert "sl_discs.solve" in (tmp_path / "api" / "index.html").read_text()
    # Wide tables and printed lines are not cut off: the rules for them are there, and apply to what
    # examples print.
    page = (tmp_path / "examples" / "ladder" / "index.html").read_text()
    assert "site.css" in page and (tmp_path / "site.css").is_file()
    assert ("language-text" in page) == (run_examples == "true")
    pictures = {path.stem for path in (tmp_path / "examples").glob("*.png")}
    assert pictures == (
        {path.stem for path in (ROOT / "examples").glob("*.py")}
        if run_examples == "true"
        else set()
    )


def test_the_gallery_draws_its_pictures(tmp_path, monkeypatch):
    """The last one is of a command."""
    monkeypatch.chdir(tmp_path)
    for code in code_of("docs/gallery.md"):
        exec(code, {})
    shown = re.findall(r"!\[.*\]\(gallery/(.*)\)", (ROOT / "docs/gallery.md").read_text())
    assert [path.name for path in sorted(tmp_path.glob("*.png"))] == sorted(shown)
    assert {path.name for path in (ROOT / "docs/gallery").iterdir()} == {*shown}


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(capsys):
    """As `docs.yml` runs it at each push. Numbers in its outputs may differ in their last digits,
    as estimates do.
    """
    cells = json.loads((ROOT / "examples" / "tour.ipynb").read_text())["cells"]
    names: dict = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    printed = capsys.readouterr().out
    assert "158.315 (exact)" in printed and names["result"].optimal and names["samples"].reliable
    shown = [
        text for cell in cells for one in cell.get("outputs", ()) for text in one.get("text", ())
    ]
    assert len(shown) == len(printed.splitlines()) and shown[0] in printed
