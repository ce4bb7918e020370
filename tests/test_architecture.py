"""The shape of the package: rooms in the order of imports, their sizes in tokens, names of files,
and short roads.
"""

import ast
import collections
import functools
import graphlib
import importlib.util
import io
import json
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "sl_discs"

# The rooms in the order of imports, as data passes through them: a room imports only those above it
# in this table. Their budgets are in tokens of Python's `tokenize`, without comments and
# docstrings, and are never raised. Where a room is larger, the second number is its size, which may
# only fall.
ROOMS = {
    "support": (7_000, 7_000),
    "instances": (21_500, 21_500),
    "models": (13_300, 13_300),
    "problems": (13_900, 13_900),
    "samplers": (7_600, 7_600),
    "localization": (3_300, 3_300),
    "engines": (42_500, 42_500),
    "chains": (6_900, 6_900),
    "solving": (30_500, 31_805),
    "sampling": (27_000, 27_000),
    "testing": (5_500, 5_500),
    "discs_plugin": (8_300, 8_300),
    "experiment": (18_200, 17_820),
    "reproduction": (6_500, 6_500),
    "commands": (14_000, 14_000),
    "doors": (5_200, 5_200),
}
# Files beside the rooms, which import any of them: the adapters to other packages, and what starts
# a command.
DOORS = {
    "__init__",
    "__main__",
    "blackjax",
    "dimod",
    "discs_main",
    "main_sampling",
    "networkx_backend",
}
MOST_ENTRIES = 25


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Returns syntax trees of files by their dotted names in the package; a folder's is that of its
    `__init__`.
    """
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def statements(node: ast.AST):
    """Yields all nodes, also in functions, but not what is imported for type checkers alone."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            for other in child.orelse:
                yield from statements(other)
        else:
            yield from statements(child)


# Code named by a string, as `sl_discs.solving.solver`, counts as an import.
PLACE = re.compile(r"sl_discs(?:\.[a-z_]\w*)+(?:\.[A-Za-z_]\w*)?")


def names_in(node: ast.AST) -> list[str]:
    """Returns the modules, or names in modules, that a node imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and PLACE.fullmatch(node.value)
    ):
        return [node.value]
    return []


def imports_of(trees: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Returns the files of the package that each file imports."""
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


def room_of(module: str) -> str:
    return "doors" if module in DOORS else module.partition(".")[0]


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Returns one of its cycles, empty where there is none."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def against_the_order(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Returns the imports between rooms that do not go down; `sl_discs` itself has the version."""
    row = {room: number for number, room in enumerate(ROOMS)}
    pairs = (
        (importer, imported)
        for importer, found in graph.items()
        for imported in found - {"__init__"}
    )
    return {
        (importer, imported)
        for importer, imported in pairs
        if room_of(importer) != room_of(imported)
        and row[room_of(importer)] <= row[room_of(imported)]
    }


@pytest.fixture(scope="module")
def graph():
    return imports_of(modules())


def test_no_cycle_between_files(graph):
    assert cycle_in(graph) == []


def test_rooms_import_only_those_below(graph):
    assert {room_of(module) for module in graph} == set(ROOMS)
    assert against_the_order(graph) == set()


def test_a_cycle_would_be_seen():
    """Imports in functions count, also by name; those for type checkers do not."""
    trees = {
        "models.a": "def f():\n    from sl_discs.engines.b import g",
        "engines.b": "import importlib\nc = importlib.import_module('sl_discs.engines.c')",
        "engines.c": "from sl_discs.models import a\nimport sl_discs.support.errors",
        "support.errors": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import "
        "sl_discs.models.a",
    }
    graph = imports_of({name: ast.parse(text) for name, text in trees.items()})
    assert set(cycle_in(graph)) == {"models.a", "engines.b", "engines.c"}
    assert against_the_order(graph) == {("models.a", "engines.b")}
    assert graph["support.errors"] == set()


SKIPPED = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def tokens_in(text: str) -> int:
    """Returns the number of tokens of a file without its comments and docstrings."""
    documented = [node for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED)]
    docstrings = {
        node.body[0].lineno
        for node in documented
        if ast.get_docstring(node, clean=False) is not None
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(
        one.type not in SKIPPED and not (one.type == tokenize.STRING and one.start[0] in docstrings)
        for one in tokens
    )


@functools.cache
def sizes() -> collections.Counter:
    """Returns the number of tokens of each room."""
    found = collections.Counter()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts
        found[parts[0] if len(parts) > 1 else "doors"] += tokens_in(
            path.read_text(encoding="utf-8")
        )
    return found


def test_no_room_grows_beyond_its_budget():
    above = {room: size - max(ROOMS[room]) for room, size in sizes().items()}
    assert {room: tokens for room, tokens in above.items() if tokens > 0} == {}, (
        "what leaves for what came?"
    )


def test_a_room_that_has_shrunk_stays_so():
    """The second number follows the room down, in steps of 100."""
    loose = {
        room: size
        for room, size in sizes().items()
        if ROOMS[room][1] - max(size, ROOMS[room][0]) >= 100
    }
    assert loose == {}, "lower the second number"


def test_comments_and_docstrings_cost_no_tokens():
    documented = '"""A."""\n# B.\nx = 1\n\n\ndef f():\n    """C."""\n    pass\n'
    assert tokens_in(documented) == tokens_in("x = 1\ndef f():\n  pass")


def test_each_file_has_a_name_of_its_own_and_the_package_few_entries():
    """So that a search finds it."""
    names = collections.Counter(
        path.name for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"
    )
    assert [name for name, count in names.items() if count > 1] == []
    entries = [path for path in PACKAGE.iterdir() if path.suffix or any(path.glob("*.py"))]
    assert len(entries) <= MOST_ENTRIES


# A fixed call of each driver, and how many functions of the package it may enter the second time,
# without lambdas and comprehensions: what a reader of the call meets. A number may only fall.
ROADS = {"solve": 305, "sample": 211, "run": 324}
ROAD = """
import json, sys, tempfile
from pathlib import Path
import networkx as nx
import sl_discs
from sl_discs.commands.main import main

PACKAGE = str(Path(sl_discs.__file__).parent)
cut = sl_discs.maxcut(nx.random_regular_graph(3, 200, seed=0))

def run():
    with tempfile.TemporaryDirectory() as folder:
        main([
            "sl-discs", "run", "--config=configs/experiment/mis/er_density.py", "--samplers=PAS,SL-PAS",
            "--model_config=configs/model/mis_config.py", "--model_config.cfg_str=r-0.10",
            "--config.experiment.num_instances=1", "--config.experiment.chain_length=1100",
            f"--config.experiment.save_root={folder}/results",
        ])

CALLS = {
    "solve": lambda: sl_discs.solve(cut, seed=0),
    "sample": lambda: sl_discs.sample(cut, 1.0, 400, seed=0),
    "run": run,
}
entered = {}
for name, call in CALLS.items():
    call()
    found = set()

    def profile(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith("<"):
            found.add((code.co_filename, code.co_firstlineno))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    entered[name] = len(found)
print(json.dumps(entered))
"""


def test_roads_stay_short():
    done = subprocess.run(
        [sys.executable, "-c", ROAD],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    entered = json.loads(done.stdout.splitlines()[-1])
    assert {name: count for name, count in entered.items() if count > ROADS[name]} == {}


def test_a_problem_from_a_dict_loads_no_reader_of_files():
    code = """
import sys, sl_discs
sl_discs.qubo({(0, 1): 1.0})
loaded = [module for name, module in sys.modules.items() if name.partition(".")[0] == "sl_discs"]
assert not any(module.__name__.endswith(("_files", "formats", "archive", "dataset")) for module in loaded)
rooms = {module.__name__.split(".")[1] for module in loaded if "." in module.__name__}
assert rooms == {"support", "instances", "models", "problems"}, rooms
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


# Names in backticks, in docstrings and comments: `folder.file`, `file.name`, `Class.name`,
# `tests/file.py`.
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
    """Whether each part of a dotted name is in the package's code, or the first one is not
    its own.
    """
    first, *others = name.split(".")
    foreign = is_library(first) or (first not in known and first.islower())
    return (
        others[-1] in SUFFIXES
        or name in OTHERS
        or foreign
        or {first, *others} - {"sl_discs"} <= known
    )


def unresolved(text: str, known: set[str]) -> list[str]:
    """Names in backticks, in comments and strings of a file, that refer to nothing."""
    files = {one.name for one in PACKAGE.rglob("*.py*")} | OTHERS
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    words = "\n".join(
        one.string for one in tokens if one.type in (tokenize.COMMENT, tokenize.STRING)
    )
    odd = [name for name in DOTTED.findall(words) if not resolves(name, known)]
    return odd + [
        name
        for name in FILE.findall(words)
        if not ((PACKAGE.parent / name).exists() or name in files)
    ]


def test_names_in_comments_exist():
    known = words_in(modules())
    odd = {
        path.name: unresolved(path.read_text(encoding="utf-8"), known)
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: names for name, names in odd.items() if names} == {}


def test_every_class_has_a_name_of_its_own():
    """So that a search finds it."""
    names = [
        node.name
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def test_a_name_of_something_gone_would_be_seen():
    known = words_in({"models.base": ast.parse("class Model:\n    size: int\ndef f(): ...")})
    text = """# `models.base.f`, `base.Model`, `Model.size`, `numpy.zeros`, `tests/test_architecture.py`
# `base.g`, `models.gone`, `Model.mass`, `gone.py`"""
    assert unresolved(text, known) == ["base.g", "models.gone", "Model.mass", "gone.py"]
