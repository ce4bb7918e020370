"""Imports go one way: no cycles between files or folders, and each folder imports only those below it."""

import ast
import graphlib
import subprocess
import sys
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
    ["experiment"],
    ["reductions"],
    ["proofs"],
    ["solving"],
    ["sampling"],
    ["testing"],
    ["discs_plugin"],
    ["sweeps"],
    ["tuning"],
    ["reproduction"],
    ["commands"],
]
ROOT_FILES = {
    "__init__", "batching", "command", "errors", "files", "keys", "own_code", "problem_names", "terminal",
    "version",
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
    assert graph["proofs"] >= {"proofs.tables", "proofs.cliques"}, "imports in functions count"
    assert cycle_in(graph) == []


def test_folders_import_only_those_below(graph):
    assert {folder_of(module) for module in graph} == {folder for row in ORDER for folder in row}
    assert against_the_order(graph) == set()


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


def test_every_class_has_a_name_of_its_own():
    """So that a search finds it."""
    names = [node.name for tree in modules().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
