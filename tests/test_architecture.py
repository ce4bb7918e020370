"""Imports go one way: no cycles between files or folders, and each folder imports only those below it."""

import ast
import functools
import graphlib
import importlib.util
import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "sl_discs"

# Folders from the bottom to the top, as data passes through them; those of one row do not import each other.
# `(root)` is what every station uses, `commands` also the entry points beside it.
ORDER = [
    ["(root)"],
    ["instances"],
    ["models"],
    ["problems"],
    ["samplers"],
    ["localization"],
    ["engines"],
    ["chains"],
    ["experiment"],
    ["reductions"],
    ["proofs"],
    ["solving"],
    ["sampling"],
    ["testing"],
    ["discs_plugin"],
    ["sweeps"],
    ["reproduction"],
    ["commands"],
]
ROOT_FILES = {
    "__init__", "batching", "cache", "command", "errors", "figures", "files", "keys", "locks", "memory", "own_code",
    "terminal",
}  # fmt: skip
ENTRY_POINTS = {"__main__", "blackjax", "dimod", "discs_main", "main_sampling", "networkx_backend"}


def modules() -> dict[str, ast.Module]:
    """The syntax tree of each file, by dotted name below the package; a folder's is that of its `__init__`."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def statements(node: ast.AST):
    """All nodes, also in functions, but not what is imported for type checkers alone."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for other in child.orelse:
                yield from statements(other)
        else:
            yield from statements(child)


def names_in(node: ast.AST) -> list[str]:
    """Modules, or names in modules, that a node imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        return [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    return []


def imports_of(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """The files of the package that each file imports."""
    graph = {}
    for importer, tree in trees.items():
        graph[importer] = set()
        for name in (name for node in statements(tree) for name in names_in(node)):
            prefix, _, inside = name.partition(".")
            if prefix == "sl_discs":
                # A name may be a module, or something in one.
                known = [one for one in (inside, inside.rpartition(".")[0]) if one in trees]
                graph[importer] |= set(known[:1])
        graph[importer].discard(importer)
    return graph


def folder_of(module: str) -> str:
    folder, dot, _ = module.partition(".")
    if dot or (PACKAGE / folder).is_dir():
        return folder
    # Anything else in the package's root has no place in the order.
    return "(root)" if module in ROOT_FILES else "commands" if module in ENTRY_POINTS else module


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """One of its cycles, empty where there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def against_the_order(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Imports between folders that do not go down."""
    row = {folder: number for number, folders in enumerate(ORDER) for folder in folders}
    pairs = ((importer, imported) for importer, found in graph.items() for imported in found)
    return {
        (importer, imported)
        for importer, imported in pairs
        if folder_of(importer) != folder_of(imported) and row[folder_of(importer)] <= row[folder_of(imported)]
    }


@pytest.fixture(scope="module")
def graph():
    return imports_of(modules())


def test_no_cycle_between_files(graph):
    assert cycle_in(graph) == []


def test_folders_import_only_those_below(graph):
    assert {folder_of(module) for module in graph} == {folder for row in ORDER for folder in row}
    assert against_the_order(graph) == set()


def test_a_cycle_would_be_seen():
    """Imports in functions count, also by name; those for type checkers do not."""
    trees = {
        "models.a": "def f():\n    from sl_discs.engines.b import g",
        "engines.b": "import importlib\nc = importlib.import_module('sl_discs.engines.c')",
        "engines.c": "from sl_discs.models import a\nimport sl_discs.errors",
        "errors": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sl_discs.models.a",
    }
    graph = imports_of({name: ast.parse(text) for name, text in trees.items()})
    assert set(cycle_in(graph)) == {"models.a", "engines.b", "engines.c"}
    assert against_the_order(graph) == {("models.a", "engines.b")}
    assert graph["errors"] == set()


# Files met on a road: those that its first file imports, and all that they import. Few enough to be read in turn.
ROADS = {
    "solving.solve": 50,  # without reductions, provers and local searches, which kinds name
    "sampling.sample": 52,
    "experiment.run": 36,
    "engines.reference": 16,
    "samplers.base": 8,
}


def road(graph: dict[str, set[str]], first: str) -> set[str]:
    """The files that one imports, directly or not, and itself."""
    found, new = set(), {first}
    while new:
        found |= new
        new = set().union(*(graph[one] for one in new)) - found
    return found


@pytest.mark.parametrize("first", ROADS)
def test_roads_stay_short(graph, first):
    assert len(road(graph, first)) <= ROADS[first]


def test_a_problem_from_a_dict_loads_no_reader_of_files():
    code = """
import sys, pathlib, sl_discs
sl_discs.qubo({(0, 1): 1.0})
loaded = [module for name, module in sys.modules.items() if name.partition(".")[0] == "sl_discs"]
lines = sum(len(pathlib.Path(module.__file__).read_text().splitlines()) for module in loaded)
assert not any(module.__name__.endswith(("_files", "formats", "archive", "dataset")) for module in loaded)
assert len(loaded) < 20 and lines < 4_000, (len(loaded), lines)
sl_discs.maxcut([[0, 1]]).value([0, 1])
assert not {"jax", "networkx", "scipy.io", "numba", "pandas", "dimod"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_loads_no_libraries_that_it_does_not_need():
    # JAX before 0.10 imports SciPy's linear algebra itself.
    code = """
import sys
import jax
from sl_discs.commands.main import command_of
command_of("run")
idle = {"networkx", "scipy.special", "matplotlib", "numba"}
if jax.__version_info__ >= (0, 10):
    idle.add("scipy.linalg")
assert not idle & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


# Names in backticks, in docstrings and comments: `folder.file`, `file.name`, `Class.name`, `tests/file.py`.
DOTTED = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(\))?`")
FILE = re.compile(r"`([\w./]+\.pyi?|(?:tests|sl_discs|benchmarks|studies|docs|examples)/[\w./]+)`")
# Names in examples, and in DISCS.
OTHERS = {
    "samplers/mine.py",
    "discs.plot_results.plot_utils", "discs/samplers/configs/sl_gwg_config.py",
}  # fmt: skip
SUFFIXES = {"csv", "json", "npz", "pkl", "txt", "yaml", "py", "pyi"}


def words_in(trees: dict[str, ast.Module]) -> set[str]:
    """The names of modules, and all names and attributes in their code."""
    found = {part for name in trees for part in name.split(".")}
    for node in (node for tree in trees.values() for node in ast.walk(tree)):
        for field in ("name", "id", "attr", "arg", "asname"):
            found |= {getattr(node, field, None) or ""}
    return found


@functools.cache
def is_library(name: str) -> bool:
    """Whether a name is that of an installed package, which folders of tests are not."""
    spec = None if name == "sl_discs" else importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None


def resolves(name: str, known: set[str]) -> bool:
    """Whether each part of a dotted name is in the package's code, or the first one is not its own."""
    first, *others = name.split(".")
    foreign = is_library(first) or (first not in known and first.islower())
    return others[-1] in SUFFIXES or name in OTHERS or foreign or {first, *others} - {"sl_discs"} <= known


def unresolved(text: str, known: set[str]) -> list[str]:
    """Names in backticks, in comments and strings of a file, that refer to nothing."""
    files = {one.name for one in PACKAGE.rglob("*.py*")} | OTHERS
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    words = "\n".join(one.string for one in tokens if one.type in (tokenize.COMMENT, tokenize.STRING))
    odd = [name for name in DOTTED.findall(words) if not resolves(name, known)]
    return odd + [name for name in FILE.findall(words) if not ((PACKAGE.parent / name).exists() or name in files)]


def test_names_in_comments_exist():
    known = words_in(modules())
    odd = {path.name: unresolved(path.read_text(encoding="utf-8"), known) for path in PACKAGE.rglob("*.py")}
    assert {name: names for name, names in odd.items() if names} == {}


def test_every_class_has_a_name_of_its_own():
    """So that a search finds it."""
    names = [node.name for tree in modules().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_a_name_of_something_gone_would_be_seen():
    known = words_in({"models.base": ast.parse("class Model:\n    size: int\ndef f(): ...")})
    text = """# `models.base.f`, `base.Model`, `Model.size`, `numpy.zeros`, `tests/test_architecture.py`
# `base.g`, `models.gone`, `Model.mass`, `gone.py`"""
    assert unresolved(text, known) == ["base.g", "models.gone", "Model.mass", "gone.py"]
