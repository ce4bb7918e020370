"""The datasets by name: `problem`, `graph_type` and `cfg_str`, spelled as in DISCS's flags."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

from sl_discs.errors import InputError
from sl_discs.instances import discs_files, generators
from sl_discs.instances.discs_files import DiscsFiles
from sl_discs.instances.generators import Generator


@dataclasses.dataclass(frozen=True)
class Family:
    """One dataset, before the source of its graphs is decided.

    Attributes:
      name: `<problem>/<graph_type>`, with `/r-<r>` if there are several.
      problem: name of the problem, such as `mis`.
      stems: possible beginnings of its archives' names.
      discs: DISCS's own files, one entry for each way to write r.
      generator: draws the dataset again; None if it is not random.
      scored: whether the references in the files belong to this problem.
    """

    name: str
    problem: str
    stems: tuple[str, ...]
    discs: tuple[DiscsFiles, ...]
    generator: Generator | None
    scored: bool = True

    def find_archives(self, data_root: Path) -> list[Path]:
        """Files `<stem>.npz` and `<stem>_<anything>.npz` of a folder, sorted by name."""
        begins = "|".join(map(re.escape, self.stems))
        pattern = re.compile(rf"({begins})(_.*)?\.npz")
        return sorted(path for path in data_root.glob("*.npz") if pattern.fullmatch(path.name))

    def where(self) -> str:
        """Which files of a data root hold this dataset, in words."""
        own = self.discs[0]
        return f"DISCS's {own.folder}/{own.pattern} or an archive {self.stems[0]}*.npz"


def find_family(problem: str, graph_type: str, cfg_str: str = "") -> Family:
    """The dataset that DISCS's flags name.

    Raises:
      InputError: an unknown problem or graph type, or a `cfg_str` that the graph type does not have.
    """
    known = sorted({key[0] for key in _FAMILIES})
    if problem not in known:
        raise InputError(f"unknown problem {problem!r}; choose one of {', '.join(known)}")
    known = sorted(key[1] for key in _FAMILIES if key[0] == problem)
    if graph_type not in known:
        raise InputError(f"unknown graph_type {graph_type!r} of {problem}; choose one of {', '.join(known)}")
    return _FAMILIES[problem, graph_type](_parse_r(cfg_str))


def _parse_r(cfg_str: str | None) -> str | None:
    """The value r of DISCS's `cfg_str`, which is `r-<value>`; None for `_` and the empty string."""
    if cfg_str in (None, "", "_"):
        return None
    if not re.fullmatch(r"r-[A-Za-z0-9.-]+", cfg_str):
        raise InputError(f"cfg_str {cfg_str!r} is not understood; write r-<value>, or _ for none")
    return cfg_str.removeprefix("r-")


def _need(r: str | None, dataset: str, known: str) -> str:
    """r, which this dataset requires."""
    if r is None:
        raise InputError(f"{dataset} needs a cfg_str; known: {known}")
    return r


def _refuse(r: str | None, dataset: str) -> None:
    """Checks that no r is given."""
    if r is not None:
        raise InputError(f"{dataset} has one dataset only, so no cfg_str r-{r}; write _")


def _er_density(r: str | None) -> Family:
    r = _need(r, "mis/er_density", "r-0.05, r-0.10, r-0.20, r-0.25 (or another density)")
    # 0.1 and 0.10 are the same density, however flag and file spell it; the published tables write two digits.
    value = generators.parse_probability(r)
    r = f"{value:.2f}" if round(value, 2) == value else repr(value)
    spellings = list(dict.fromkeys([r, repr(value)]))
    own = tuple(DiscsFiles("er_700_800", f"ER-700-800-{text}.pkl", discs_files.read_graph_list) for text in spellings)
    stems = tuple(f"mis_er_density_{text}" for text in spellings)
    return Family(f"mis/er_density/r-{r}", "mis", stems, own, generators.mis_er_density(r))


def _ertest(r: str | None) -> Family:
    r = _need(r, "mis/ertest", "r-800, r-10k")
    own = DiscsFiles(f"er_{r}_test", "ER*", discs_files.read_single_graph)
    return Family(f"mis/ertest/r-{r}", "mis", (f"mis_ertest_{r}",), (own,), generators.mis_ertest(r))


def _satlib(r: str | None) -> Family:
    _refuse(r, "mis/satlib")
    own = DiscsFiles("satlib_test", "*.cnf", discs_files.read_formula)
    return Family("mis/satlib", "mis", ("mis_satlib",), (own,), None)


def _cut(graph_type: str, r: str, generator: Generator) -> Family:
    own = DiscsFiles(f"maxcut-{graph_type}/maxcut-{r}", "test-*", discs_files.read_cut_solutions)
    return Family(f"maxcut/{graph_type}/r-{r}", "maxcut", (f"maxcut_{graph_type}_{r}",), (own,), generator)


def _maxcut_er(r: str | None) -> Family:
    known = "r-er-0.15-n-256-300, r-er-0.15-n-512-600, r-er-0.15-n-1024-1100 (or other sizes)"
    r = _need(r, "maxcut/er", known)
    return _cut("er", r, generators.maxcut_er(r))


def _maxcut_ba(r: str | None) -> Family:
    r = _need(r, "maxcut/ba", "r-ba-4-n-256-300, r-ba-4-n-512-600, r-ba-4-n-1024-1100 (or other sizes)")
    return _cut("ba", r, generators.maxcut_ba(r))


def _optsicom(r: str | None) -> Family:
    if r not in (None, "b"):
        raise InputError(f"maxcut/optsicom has r-b only, not r-{r}")
    own = DiscsFiles("optsicom", "b.pkl", discs_files.read_cut_solutions)
    return Family("maxcut/optsicom/r-b", "maxcut", ("maxcut_optsicom",), (own,), generators.maxcut_torus())


def _rb(r: str | None) -> Family:
    _refuse(r, "maxclique/rb")
    own = DiscsFiles("RB_test", "RB*", discs_files.read_scored_graphs)
    return Family("maxclique/rb", "maxclique", ("maxclique_rb",), (own,), generators.maxclique_rb())


def _twitter(r: str | None) -> Family:
    _refuse(r, "maxclique/twitter")
    own = DiscsFiles("twitter", "twitter*", discs_files.read_graphs_and_scores)
    return Family("maxclique/twitter", "maxclique", ("maxclique_twitter",), (own,), None)


def _cover(of_sets: Callable[[str | None], Family]) -> Callable[[str | None], Family]:
    """Vertex covers of the graphs of a MIS dataset, whose references are sizes of independent sets."""

    def family(r: str | None) -> Family:
        graphs = of_sets(r)
        _, _, rest = graphs.name.partition("/")
        return dataclasses.replace(graphs, name=f"vertex_cover/{rest}", problem="vertex_cover", scored=False)

    return family


_FAMILIES: dict[tuple[str, str], Callable[[str | None], Family]] = {
    ("mis", "er_density"): _er_density,
    ("mis", "ertest"): _ertest,
    ("mis", "satlib"): _satlib,
    ("maxcut", "er"): _maxcut_er,
    ("maxcut", "ba"): _maxcut_ba,
    ("maxcut", "optsicom"): _optsicom,
    ("maxclique", "rb"): _rb,
    ("maxclique", "twitter"): _twitter,
    ("vertex_cover", "er_density"): _cover(_er_density),
    ("vertex_cover", "ertest"): _cover(_ertest),
    ("vertex_cover", "satlib"): _cover(_satlib),
}
