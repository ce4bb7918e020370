"""The README, and the site: its code runs, its links lead somewhere, and it builds without a
warning.
"""

import itertools
import json
import math
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import tables

from sl_discs.experiment import record
from sl_discs.experiment.summary import published_cells
from sl_discs.instances.formats import FORMATS, read_instances
from sl_discs.reproduction.report import level_rows
from sl_discs.samplers import registry
from sl_discs.testing import conformance

ROOT = Path(__file__).parents[1]
PAGES = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md"))]


def code_of(page: str) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def texts_of(page: str) -> list[str]:
    """The blocks of a page that show what is printed."""
    return re.findall(r"```text\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def test_the_readme_is_short_and_its_example_prints_what_is_shown(capsys):
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 90 and len(text.split()) <= 600
    (code,), (_, shown) = code_of("README.md"), texts_of("README.md")
    names = {}
    exec(code, names)
    assert capsys.readouterr().out == shown
    graph, (left, _) = nx.random_geometric_graph(60, 0.22, seed=4), names["result"].partition
    assert names["result"].best_value == sum((u in left) != (v in left) for u, v in graph.edges)


def test_the_qubo_from_python_prints_what_is_shown(capsys):
    [code] = [code for code in code_of("docs/own_problem.md") if "sl_discs.qubo(" in code]
    exec(code, {})
    assert (
        f"prints `{capsys.readouterr().out.strip()}`. The smallest"
        in (ROOT / "docs/own_problem.md").read_text()
    )


def test_the_address_of_the_repository_is_that_of_the_package():
    """One place to change: `project.urls`."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    address, name = urls["Repository"], urls["Repository"].rpartition("/")[2]
    for page in [
        "README.md",
        "CITATION.cff",
        "pyproject.toml",
        ".github/ISSUE_TEMPLATE/config.yml",
        *PAGES,
    ]:
        found = re.findall(rf"https://github\.com/[\w-]+/{name}\b", (ROOT / page).read_text())
        assert set(found) <= {address}, page
        assert found or page.startswith("docs/"), f"{page} does not name it"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("discs") is None, reason="needs a checkout of DISCS on PYTHONPATH")
def test_the_commands_of_the_readme_print_in_discs_what_is_shown(tmp_path):
    """All but the installation; the cut that the short run finds differs by processor, for the same
    reason.
    """
    shown = texts_of("README.md")[0]
    block = (ROOT / "README.md").read_text().partition('[discs]"\n')[2].partition("```")[0]
    commands = block.replace("sl-discs ", f"{sys.executable} -m sl_discs ")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        ["bash", "-ec", commands],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    printed = re.sub(r"\d+\.0000", "", done.stdout)
    for part in re.sub(r"\d+\.0000", "", shown).replace("\n", "...").split("..."):
        assert part.strip("; )") in printed


TABLED = [
    page
    for page in (path.relative_to(ROOT).as_posix() for path in tables.PAGES)
    if "<!-- table" in (ROOT / page).read_text()
]


@pytest.mark.parametrize("page", TABLED)
def test_tables_are_made_from_what_commands_saved(page):
    """Of benchmarks, studies and the comparison of arms."""
    text = (ROOT / page).read_text()
    assert tables.filled(text) == text, "run: python docs/tables.py"


def test_no_measured_numbers_are_left_unused():
    shown = re.findall(
        r"<!-- table: ([\w-]+) -->", "".join((ROOT / page).read_text() for page in TABLED)
    )
    assert sorted(shown) == sorted(tables.TABLES)
    used = {tables.path_of(name) for name in shown}
    assert set(tables.MEASURED.glob("*.json")) <= used


def test_every_measured_number_can_be_measured_anew_and_has_an_age():
    names = {path.stem for path in tables.MEASURED.glob("*.json")}
    studies = {"levels", "readings", "ablation", "field"}
    assert set(tables.CODE) == names | studies
    # Tables that have no entry have one by their file, or are computed from other numbers.
    aged = {tables.path_of(name) for name in tables.CODE}
    others = {tables.path_of(name) for name in tables.TABLES} - aged
    assert others == {tables.path_of("headline")} and all(path.is_file() for path in aged)
    script = (ROOT / "benchmarks" / "measure.sh").read_text()
    # `solve` and `solve-10` are one line of the script.
    assert names == {
        *re.findall(r"^ +measure ([\w-]+) ", script, re.MULTILINE),
        "solve",
        "solve-10",
    }
    assert all((ROOT / folder).exists() for code in tables.CODE.values() for folder in code)


# Those of a GPU and of the readings are from before their commands saved it.
@pytest.mark.parametrize("name", sorted(set(tables.CODE) - {"gpu", "readings"}))
def test_commands_save_when_and_how_numbers_were_measured(name):
    assert {"commit", "date", "machine", "versions"} <= set(
        json.loads(tables.path_of(name).read_text())["measured"]
    )


def test_an_unknown_name_is_named_with_those_there_are():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "tables.py", "--check=nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        done.returncode == 1
        and "--check=nothing: no numbers of this name; there are rates, gpu" in done.stderr
    )


def test_the_age_of_a_measured_number_counts_the_commits_to_its_code(tmp_path, monkeypatch):
    def git(*words):
        given = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", tmp_path, *given, *words], check=True, capture_output=True)

    def committed(name, text):
        (tmp_path / name).write_text(text)
        git("add", "-A")
        git("commit", "-m", name)

    git("init")
    committed("code.py", "1")
    made = {
        "commit": tables.git(tmp_path, "rev-parse", "HEAD"),
        "date": "2026-01-01",
        "machine": "m",
    }
    committed("numbers.json", json.dumps({"measured": made}))
    installed = tmp_path / "lib" / "sl_discs" / "experiment" / "record.py"
    installed.parent.mkdir(parents=True)
    monkeypatch.setattr(record, "__file__", str(installed))
    assert record.commit() == "unknown"  # the repository around it is another project's
    monkeypatch.setattr(record, "__file__", str(tmp_path / "sl_discs" / "experiment" / "record.py"))
    (tmp_path / "page.md").write_text("A page that was not there.")
    git("add", "page.md")
    assert not record.commit().endswith("+")  # pages are no code
    (tmp_path / "code.py").write_text("3")
    assert record.commit().endswith("+")
    git("checkout", "code.py")
    assert tables.age(tmp_path / "numbers.json", ["code.py"]) == (
        f"{made['commit']} of 2026-01-01, m; no later commit changed its code", True,
    )  # fmt: skip
    committed("code.py", "2")
    words, is_new = tables.age(tmp_path / "numbers.json", ["code.py"])
    assert words.endswith("m; 1 later commit changed its code") and not is_new
    assert tables.age(tmp_path / "numbers.json", ["other.py"])[1]
    committed("numbers.json", "{}")
    words, is_new = tables.age(tmp_path / "numbers.json", ["code.py"])
    assert words.startswith("no commit recorded; the file is from ") and not is_new


def range_of(ratios, form="{:,g}") -> str:
    """`2.3 to 5.6`, with two significant digits, as in prose."""
    low, high = (form.format(float(f"{number:.2g}")) for number in (min(ratios), max(ratios)))
    return f"{low} to {high}"


def figures() -> Iterator[tuple[str, str]]:
    """Pages, and the words with which they tell what was measured."""
    readme, reproduction, gains = (
        "README.md",
        "docs/reproduction.md",
        "docs/does_localization_help.md",
    )
    formats = ("eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen")[len(FORMATS) - 8]
    yield readme, f"in {formats} [file formats]"
    levels = level_rows(tables.numbers("levels")["claim"]["levels"])
    levels = [row for row in levels if "one_flip" not in row["method"]]
    for row in levels:
        yield from ((page, f"{row['pooled_z']:+.1f}") for page in (readme, reproduction))
    yield reproduction, f"{sum(row['sets'] for row in levels)} "
    yield reproduction, f"{published_cells()} published cells"
    for row in tables.numbers("pooled")["shares"]:
        if row["arm"] in ("defaults", "searched"):
            words = f"{row['mean']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
            yield from (
                (page, words)
                for page in [gains] + [reproduction] * ("one_flip" not in row["sampler"])
            )
            yield from [(readme, words)] * (
                (row["arm"], row["sampler"]) == ("defaults", "path_auxiliary")
            )

    for row in tables.numbers("pooled")["shares_without_ceiling"]:
        yield gains, f"{row['mean']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
    without = [
        row
        for row in tables.numbers("levels")["claim"]["levels"]
        if row["dataset"] != "maxclique/twitter" and "one_flip" not in row["method"]
    ]
    for row in level_rows(without):
        yield reproduction, f"{row['pooled_z']:+.1f}"

    def rates(name, engine, base="discs"):
        cases = [
            one for samplers in tables.numbers(name)["cases"].values() for one in samplers.values()
        ]
        cases = [{key: value["chain_steps_per_s"] for key, value in one.items()} for one in cases]
        ratios = [one[engine] / one[base] for one in cases if {engine, base} <= set(one)]
        return ratios, [one[engine] / 1e6 for one in cases if engine in one]

    for page in (readme, "docs/engines.md"):
        yield page, f"{range_of(rates('rates', 'cpu')[0])} times as many steps per second as DISCS"
    yield (
        "docs/own_sampler.md",
        f"{range_of(rates('rates', 'cpu', 'reference')[0])} times as many steps per second",
    )
    ratios, millions = rates("gpu", "cuda")
    yield readme, f"{min(millions):.0f} to {max(millions):.0f} million steps per second"
    yield (
        readme,
        f"on ER-0.05 {min(ratios):.0f} to {max(ratios):.0f} times DISCS's on the same card",
    )
    leads = [
        one["default"]["dwave-samplers"]["lead_of_first"]
        for one in tables.numbers("solve")["cases"].values()
    ]
    ahead, behind = sum(lead[1] > 0 for lead in leads), sum(lead[2] < 0 for lead in leads)
    yield readme, f"on {ahead} of {len(leads)} families"
    yield readme, f"level on {len(leads) - ahead - behind}"
    assert not behind
    used = {case: one["default"] for case, one in tables.numbers("solve")["cases"].items()}
    used = {
        case: {peer: each["seconds"][0] / 8 for peer, each in one.items()}
        for case, one in used.items()
    }
    dense, peers = used.pop("maxcut-dense-2500"), ("dwave-samplers", "kamis")
    elsewhere, kamis = ([one[peer] for one in used.values() if peer in one] for peer in peers)
    yield (
        "docs/field.md",
        f"used {dense['dwave-samplers']:.1f} s on dense-2500 (`solve` {dense['cpu']:.1f} s there)",
    )
    yield "docs/field.md", f"{min(elsewhere):.1f} to {max(elsewhere):.1f} s elsewhere"
    yield "docs/field.md", f"whose reductions come first, {min(kamis):.1f} to {max(kamis):.0f} s"
    [sparse] = tables.numbers("solve-10")["cases"]["mis-sparse-10000"].values()
    behind = -100 * sparse["kamis"]["lead_of_first"][0] / sparse["cpu"]["mean_best"]
    yield "docs/field.md", f"KaMIS is then ahead by {behind:.2f} %"
    costs = [
        one
        for samplers in tables.numbers("localization")["cases"].values()
        for one in samplers.values()
    ]
    yield readme, f"{range_of([100 * one['cpu']['added'] for one in costs])} %"
    first = max(
        time for runs in tables.numbers("first")["first"].values() for time in runs["first"]
    )
    yield "docs/faq.md", f"up to {math.ceil(first)} CPU-seconds with `path_auxiliary`"
    low_rank = [
        one["methods"]["low-rank"] for one in tables.numbers("laws")["targets"] if one["width"] < 1
    ]
    yield (
        readme,
        f"{range_of([one['gain'][0] for one in low_rank if one['reliable'] == 1])} times less CPU "
        "time",
    )
    theory, found = "docs/theory.md", tables.numbers("bounds")
    met, runs = (sum(row[name] for row in found["runs"]) for name in ("met", "runs"))
    yield theory, f"at {met} of {runs} levels"
    [literal] = [row for row in found["verdicts"] if row["reading"] == "all sites or none"]
    yield theory, f"all {literal['failed']} models with a positive bound"
    shares = [
        max(row["own_row"] for row in found["real"] if row["instance"][:3] == name)
        for name in ("MIS", "Max")
    ]
    yield theory, "{:.2f} of the sites of MIS and {:.2f} of those of MaxCut".format(*shares)
    ways = {
        row["way"]: row["error"]
        for row in tables.numbers("convergence")["sites"]
        if row["target"].endswith(" 48")
    }
    yield (
        theory,
        "{exact:.3f}, the mean of sweeps {mean:.3f}, and the plain chain {chain:.3f}".format(
            **ways
        ),
    )


def test_the_figures_on_pages_are_measured():
    """Levels, gains, speed, quality at equal time, the cost of localization, and where it wins."""
    pages = {page: " ".join((ROOT / page).read_text().split()) for page in ["README.md", *PAGES]}
    assert [(page, words) for page, words in figures() if words.strip() not in pages[page]] == []


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


def test_the_table_of_extras_is_complete_and_what_is_installed_comes_from_the_clone():
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    table = (ROOT / "docs/index.md").read_text().partition("| extra |")[2].partition("\n\n")[0]
    named = re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))
    assert sorted(named) == sorted(extras)
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "sl_discs").rglob("*.py"),
    ]:
        for line in re.findall(r"pip install [^\n]*", path.read_text()):
            assert not re.search(r"""install ["']?sl_discs""", line), (
                f"{path}: {line}"
            )  # it is on no index
            assert extras >= set(re.findall(r"\.\[(\w+)\]", line)), f"{path}: {line}"


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
    (code,) = code_of("docs/experiments.md")
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


def test_commands_that_import_the_sampler_of_ones_own_do_not_check_it(monkeypatch):
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    monkeypatch.setattr(registry, "_DEFAULTS", dict(registry._DEFAULTS))
    monkeypatch.setattr(conformance, "check_case", lambda *given, **options: pytest.fail("checked"))
    exec(code_of("docs/own_sampler.md")[0], {"__name__": "one_or_two"})
    assert "one_or_two" in registry.known_samplers()


@pytest.mark.slow
def test_the_sampler_of_ones_own_conforms_as_printed(monkeypatch):
    """`check_sampler` is in the page's code."""
    # Other tests look at what is registered.
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    monkeypatch.setattr(registry, "_DEFAULTS", dict(registry._DEFAULTS))
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


@pytest.mark.parametrize("page", ["README.md", "benchmarks/README.md", "studies/README.md", *PAGES])
def test_links_lead_to_files_of_the_repository(page):
    """Also where MkDocs, which looks at anchors too, is not installed."""
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        target = (ROOT / page).parent / link
        if "://" in link or (
            target.parent == ROOT / "docs/examples"
            and (ROOT / "examples" / f"{target.stem}.py").exists()
        ):
            continue
        assert target.exists(), f"{page}: {link}"


@pytest.mark.parametrize(
    "page", ["README.md", "CHANGELOG.md", "benchmarks/README.md", "studies/README.md", *PAGES]
)
def test_decimals_have_a_leading_zero(page):
    """A format such as `:.2f` and an attribute are no numbers."""
    assert re.findall(r"(?<![\w./:)\]])\.\d[^\n]{0,30}", (ROOT / page).read_text()) == []


def test_the_api_page_names_what_is_there():
    for name in re.findall(r"^::: (\S+)", (ROOT / "docs/api.md").read_text(), re.MULTILINE):
        assert pkgutil.resolve_name(name).__doc__, name


def test_every_page_is_in_the_navigation():
    entries = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    examples = [f"docs/examples/{path.stem}.md" for path in (ROOT / "examples").glob("*.py")]
    assert sorted(f"docs/{entry}" for entry in entries) == sorted([*PAGES, *examples])


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="needs the extra docs")
@pytest.mark.parametrize("run_examples", ["false", pytest.param("true", marks=pytest.mark.slow)])
def test_the_site_builds_without_a_warning(run_examples, tmp_path):
    assert find_spec("material") and find_spec("mkdocstrings"), "install the extra docs"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    environment = os.environ | {"SL_DISCS_RUN_EXAMPLES": run_examples, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
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
    assert [path.name for path in sorted(tmp_path.glob("*.png"))] == sorted({*shown} - {"row.png"})
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
