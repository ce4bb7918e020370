"""Checks the prose of the README and of the pages: `python docs/check.py`.

Prints one line for each fault, and exits with 1 if there are any. What the code on pages computes
is tested in tests/test_site.py.
"""

import json
import math
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tables

from sl_discs.experiment.summary import published_cells
from sl_discs.reproduction.report import level_rows

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
README = ROOT / "README.md"
READMES = [README, ROOT / "benchmarks" / "README.md", ROOT / "studies" / "README.md"]
MOST_LINES = 90
MOST_WORDS = 500
# Numbers from before the commands saved when and how they were measured.
WITHOUT_A_RECORD = {"gpu", "readings"}


def name_of(page: Path) -> str:
    """Returns the path from the repository's root."""
    return page.relative_to(ROOT).as_posix()


def length_of_the_readme() -> Iterator[str]:
    """The README is short."""
    text = README.read_text()
    if len(text.splitlines()) > MOST_LINES or len(text.split()) > MOST_WORDS:
        yield f"README.md: more than {MOST_LINES} lines or {MOST_WORDS} words"


def addresses() -> Iterator[str]:
    """The address of the repository is that of `project.urls` in pyproject.toml."""
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    address = urls["Repository"]
    pattern = rf"https://github\.com/[\w-]+/{address.rpartition('/')[2]}\b"
    naming = [README, ROOT / "CITATION.cff", ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"]
    for page in [*naming, *PAGES]:
        found = set(re.findall(pattern, page.read_text()))
        if not found <= {address}:
            yield f"{name_of(page)}: the address of the repository is {address}"
        if not found and page in naming:
            yield f"{name_of(page)}: it does not name the address of the repository"


def measured_tables() -> Iterator[str]:
    """Tables are made from what commands saved, and all that was saved is shown."""
    shown = []
    for page in tables.PAGES:
        text = page.read_text()
        shown += re.findall(r"<!-- table: ([\w-]+) -->", text)
        if tables.filled(text) != text:
            yield f"{name_of(page)}: its tables differ from docs/measured; run docs/tables.py"
    if sorted(shown) != sorted(tables.TABLES):
        yield f"docs/tables.py: tables that are not shown, or twice: {shown}"
    for path in sorted(set(tables.MEASURED.glob("*.json")) - set(map(tables.path_of, shown))):
        yield f"{name_of(path)}: no page shows these numbers"


def measured_numbers() -> Iterator[str]:
    """Each can be measured anew, and says when and how it was measured."""
    names = {path.stem for path in tables.MEASURED.glob("*.json")}
    if set(tables.CODE) != names | {"levels", "readings", "ablation", "field"}:
        yield "docs/tables.py: CODE has other names than docs/measured"
    aged = {tables.path_of(name) for name in tables.CODE}
    if {tables.path_of(name) for name in tables.TABLES} - aged != {tables.path_of("headline")}:
        yield "docs/tables.py: CODE lacks the code of a table"
    script = (ROOT / "benchmarks" / "measure.sh").read_text()
    measured = set(re.findall(r"^ +measure ([\w-]+) ", script, re.MULTILINE))
    # `solve` and `solve-10` are one line of the script.
    for name in sorted(names - measured - {"solve", "solve-10"}):
        yield f"benchmarks/measure.sh: it does not measure {name}"
    for folder in sorted({folder for code in tables.CODE.values() for folder in code}):
        if not (ROOT / folder).exists():
            yield f"docs/tables.py: {folder} is not there"
    for name in sorted(set(tables.CODE) - WITHOUT_A_RECORD):
        record = json.loads(tables.path_of(name).read_text())["measured"]
        if not {"commit", "date", "machine", "versions"} <= set(record):
            yield f"{name_of(tables.path_of(name))}: it lacks when and how it was measured"


def range_of(ratios: Sequence[float]) -> str:
    """Returns `2.3 to 5.6`, with two significant digits, as in prose."""
    low, high = (f"{float(f'{number:.2g}'):,g}" for number in (min(ratios), max(ratios)))
    return f"{low} to {high}"


def figures() -> Iterator[tuple[str, str]]:
    """Yields pages, and the words with which they tell what was measured."""
    readme, start = "README.md", "docs/index.md"
    reproduction, gains = "docs/reproduction.md", "docs/does_localization_help.md"
    levels = level_rows(tables.numbers("levels")["claim"]["levels"])
    levels = [row for row in levels if "one_flip" not in row["method"]]
    for row in levels:
        yield from ((page, f"{row['pooled_z']:+.1f}") for page in (start, reproduction))
    yield reproduction, f"{sum(row['sets'] for row in levels)} "
    yield reproduction, f"{published_cells()} published cells"
    for row in tables.numbers("pooled")["shares"]:
        if row["arm"] in ("defaults", "searched"):
            words = f"{row['mean']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
            yield gains, words
            if (row["arm"], row["sampler"]) == ("defaults", "path_auxiliary"):
                yield from ((page, words) for page in (readme, start))

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
    yield start, f"{range_of(rates('rates', 'cpu')[0])} times as many"
    ratios, millions = rates("gpu", "cuda")
    yield start, f"{min(millions):.0f} to {max(millions):.0f} million steps per second"
    yield (
        start,
        f"on ER-0.05 {min(ratios):.0f} to {max(ratios):.0f} times DISCS's on the same card",
    )
    leads = [
        one["default"]["dwave-samplers"]["lead_of_first"]
        for one in tables.numbers("solve")["cases"].values()
    ]
    ahead, behind = sum(lead[1] > 0 for lead in leads), sum(lead[2] < 0 for lead in leads)
    for page in (readme, start):
        yield page, f"on {ahead} of {len(leads)} families"
        yield page, f"level on {len(leads) - ahead - behind}"
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
    yield start, f"{range_of([100 * one['cpu']['added'] for one in costs])} %"
    first = max(
        time for runs in tables.numbers("first")["first"].values() for time in runs["first"]
    )
    yield "docs/faq.md", f"up to {math.ceil(first)} CPU-seconds with `path_auxiliary`"
    low_rank = [
        one["methods"]["low-rank"] for one in tables.numbers("laws")["targets"] if one["width"] < 1
    ]
    yield (
        start,
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


def figures_in_prose() -> Iterator[str]:
    """Levels, gains, speed, quality at equal time, and the cost of localization."""
    pages = {name_of(page): " ".join(page.read_text().split()) for page in [README, *PAGES]}
    for page, words in figures():
        if words.strip() not in pages[page]:
            yield f"{page}: what was measured is {words.strip()!r}"


def extras() -> Iterator[str]:
    """The table of extras is complete, and what is installed comes from the clone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    known = set(project["optional-dependencies"])
    table = (ROOT / "docs" / "index.md").read_text().partition("| extra |")[2].partition("\n\n")[0]
    rows = "".join(row.split("|")[1] for row in table.splitlines()[2:])
    if sorted(re.findall(r"`(\w+)`", rows)) != sorted(known):
        yield "docs/index.md: the table of extras differs from pyproject.toml"
    for path in [*ROOT.glob("*.md"), *PAGES, *(ROOT / "sl_discs").rglob("*.py")]:
        for line in re.findall(r"pip install [^\n]*", path.read_text()):
            # The package is on no index.
            on_an_index = re.search(r"""install ["']?sl_discs""", line)
            if on_an_index or not known >= set(re.findall(r"\.\[(\w+)\]", line)):
                yield f"{name_of(path)}: {line}"


def links() -> Iterator[str]:
    """Also where MkDocs, which looks at anchors too, is not installed."""
    examples = {f"{path.stem}.md" for path in (ROOT / "examples").glob("*.py")}
    for page in [*READMES, *PAGES]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            target = page.parent / link
            is_example = target.parent == ROOT / "docs" / "examples" and target.name in examples
            if "://" not in link and not is_example and not target.exists():
                yield f"{name_of(page)}: {link} leads nowhere"


def decimals() -> Iterator[str]:
    """They have a leading zero; a format such as `:.2f` and an attribute are no numbers."""
    for page in [*READMES, ROOT / "CHANGELOG.md", *PAGES]:
        for found in re.findall(r"(?<![\w./:)\]])\.\d[^\n]{0,30}", page.read_text()):
            yield f"{name_of(page)}: {found!r} lacks a leading zero"


def names_of_the_api() -> Iterator[str]:
    """The page of the API names what is there and has a docstring."""
    page = ROOT / "docs" / "api.md"
    for name in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE):
        if not pkgutil.resolve_name(name).__doc__:
            yield f"docs/api.md: {name} has no docstring"


def navigation() -> Iterator[str]:
    """Every page is in the navigation, and every entry of it is a page."""
    entries = re.findall(r"^ +- .*: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    examples = [f"examples/{path.stem}.md" for path in (ROOT / "examples").glob("*.py")]
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]
    for page in sorted({*entries} ^ {*pages, *examples}):
        yield f"mkdocs.yml: {page} is not a page, or not in the navigation"


CHECKS: tuple[Any, ...] = (
    length_of_the_readme,
    addresses,
    measured_tables,
    measured_numbers,
    figures_in_prose,
    extras,
    links,
    decimals,
    names_of_the_api,
    navigation,
)


def main() -> int:
    """Prints all faults; returns the exit code."""
    faults = [fault for check in CHECKS for fault in check()]
    for fault in faults:
        print(fault, file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    raise SystemExit(main())
