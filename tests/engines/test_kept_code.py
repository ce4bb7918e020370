"""Compiled code on disk, loops and XLA's programs: found again, never stale, never beside the
source.
"""

import ast
import os
import pickle
import resource
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from jitted import from_python

import sl_discs
from sl_discs.engines import compiled
from sl_discs.engines.cpu import jit
from sl_discs.engines.cpu.arithmetic import product_of_odds
from sl_discs.support.cache import checked

FOLDER, LEAST = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The project's cache, before anything is kept in it; other tests share folders that numba and
    JAX were given.
    """
    monkeypatch.setenv("SL_DISCS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(compiled, "_LEAST_S", 0.0)
    monkeypatch.setattr(compiled, "_announces", False)
    before = {name: getattr(jax.config, name) for name in (FOLDER, LEAST)}
    jax.config.update(FOLDER, None)
    compilation_cache.reset_cache()
    jit._folder.cache_clear()
    yield tmp_path / "cache"
    jit._folder.cache_clear()
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def tripled(x):
    return 3 * x


def loop_is_found():
    """Calls the loop as a new process would."""
    function = jit.entered(tripled)
    assert function(14) == 42
    return bool(function.stats.cache_hits)


def test_loops_are_found_again(folder):
    assert [loop_is_found(), loop_is_found()] == [False, True]
    assert [file.suffix for file in folder.rglob("*.*")] == [".code"]
    assert str(folder) == numba.config.CACHE_DIR  # as other packages have it


def test_code_is_compiled_again_where_its_sources_changed_and_nowhere_else(folder, tmp_path):
    """Constants are compiled in, so code with an earlier one must not be found; a new process finds
    the others.
    """
    package = tmp_path / "sl_discs"
    shutil.copytree(
        Path(sl_discs.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    loop, factor, other = (
        package / name for name in ("solving/loop.py", "engines/factor.py", "commands/other.py")
    )
    files = {
        loop: "from sl_discs.engines.cpu.jit import entered\nfrom sl_discs.engines.factor import "
        "FACTOR\n"
        "@entered\ndef times(x):\n    return FACTOR * x\n",
        factor: "FACTOR = 3\n",
        other: '"""A command."""\n',
    }
    program = (
        "from sl_discs.solving.loop import times; print(times(14), "
        "sum(times.stats.cache_hits.values()))"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(tmp_path)}
    said = []
    changes = (
        {other: '"""Another."""\n'},
        {factor: "FACTOR = 4\n"},
        {loop: files[loop].replace("* x", "* x + 1")},
    )
    for change in (files, *changes):
        for path, text in change.items():
            path.write_text(text)
        command = [sys.executable, "-B", "-c", program]
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        said.append(done.stdout.split())
    assert said == [["42", "0"], ["42", "1"], ["56", "0"], ["57", "0"]]


COMPILES = {"entered", "called", "inlined", "intrinsic", "chosen_by_type", "jit", "warp.jit"}


def is_compiled(node):
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any(ast.unparse(one).partition("(")[0] in COMPILES for one in decorators)


def names_of_compiled_code(tree):
    """Names in compiled functions and functions around them, and in what these names stand for in
    the file.
    """
    defined = {}
    for node in tree.body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        for name in (
            one.id
            for target in targets
            if target
            for one in ast.walk(target)
            if isinstance(one, ast.Name)
        ):
            defined[name] = node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined[node.name] = node
    names = set()
    waiting = [node for node in tree.body if any(map(is_compiled, ast.walk(node)))]
    while waiting:
        found = {node.id for node in ast.walk(waiting.pop()) if isinstance(node, ast.Name)} - names
        names |= found
        waiting += [defined[name] for name in found & defined.keys()]
    return names


def test_all_that_loops_are_compiled_from_is_in_their_digest():
    """By the syntax of each file: every name of its compiled code that is imported is from one of
    those sources.
    """
    package = Path(sl_discs.__file__).parent
    sources = {path for pattern in compiled._SOURCES for path in package.glob(pattern)}
    files = 0
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = names_of_compiled_code(tree)
        files += bool(names)
        for node in ast.walk(tree):
            # Exceptions are raised before anything is compiled.
            if not isinstance(node, ast.ImportFrom) or node.module == "sl_discs.support.errors":
                continue
            if not node.module.startswith("sl_discs"):
                continue
            place = package.joinpath(*node.module.split(".")[1:])
            for name in (one.name for one in node.names if (one.asname or one.name) in names):
                found = {place.with_suffix(".py"), place / f"{name}.py", place / "__init__.py"}
                assert found & sources, f"{path}: {name}"
    assert files >= 18


def test_programs_are_found_again(folder):
    compiled.keep_programs()
    hits, numbers = [], np.array([1, 2], np.float32)
    jax.monitoring.register_event_listener(
        lambda event, **_: hits.append(event.endswith("/cache_hits"))
    )
    for found in (0, 1):
        program = jax.jit(lambda x: 3 * x).lower(numbers).compile()  # as a new process would
        assert program(numbers).tolist() == [3, 6] and sum(hits) == found
    assert len(list(folder.glob("xla-*/*-cache"))) == 1


def test_a_folder_that_jax_was_given_is_left_to_it(folder, tmp_path):
    jax.config.update(FOLDER, str(tmp_path / "other"))
    compiled.keep_programs()
    assert jax.config.jax_compilation_cache_dir == str(tmp_path / "other") and not folder.exists()


def test_no_folder_no_code_kept(folder, capfd):
    """Nor is any put beside the source, where numba looks first."""
    folder.write_text("")
    compiled.keep_programs()
    assert jax.config.jax_compilation_cache_dir is None
    assert [loop_is_found(), loop_is_found()] == [False, False]
    # A compilation that takes long may say so beside it. Each warning names the variable that was set.
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert all(line.startswith("warning: no cache in ") for line in lines)
    for line, name in zip(lines, ("SL_DISCS_CACHE", "NUMBA_CACHE_DIR"), strict=True):
        assert f"set {name} to" in line
    assert not list(Path(__file__).parent.rglob("*.nb[ic]")) and not list(
        Path(__file__).parent.rglob("*.code")
    )


DAMAGES = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "one bit": lambda content: content[:-100] + bytes([content[-100] ^ 1]) + content[-99:],
    "something else": lambda content: checked(b"else"),  # with a right checksum
    "of another loop": lambda content: checked(pickle.dumps((None, ()))),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_compiled_again(folder, damage, capfd):
    loop_is_found()
    (file,) = folder.rglob("*.code")
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[damage](whole))
    assert [loop_is_found(), loop_is_found()] == [False, True]
    assert len(file.read_bytes()) > len(whole) // 2 and not capfd.readouterr().err


def test_a_full_disk_is_said_once(folder, capfd):
    """A limit on the size of files stands for it: no machine code is as small."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        assert [loop_is_found(), loop_is_found()] == [False, False]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(f"warning: nothing more is kept in {folder} ")
    assert not [file for file in folder.rglob("*") if file.is_file()]


PUBLIC = """
import sys
import numba
if sys.argv[1] == "newer":
    numba.__version__ = "99.0.1"
else:
    del numba.core.codegen.JITCodeLibrary
import numpy as np
from jitted import from_python
from sl_discs.engines.cpu import jit
from sl_discs.engines.cpu.arithmetic import product_of_odds
from sl_discs.solving.provers.covers import _pass
assert jit.INTERNALS is None
product = from_python(product_of_odds)(np.ones(8, np.float32), 0, 8, 0.5)
none = np.zeros(3, np.int64)
print(_pass(none, none, np.arange(2), False, none[:2].copy(), none.copy(), none.copy()), product)
"""


@pytest.mark.parametrize("numba_is", ["newer", "without private names"])
def test_without_private_interfaces_of_numba_the_public_ones_compile(folder, numba_is):
    command = [sys.executable, "-c", PUBLIC, numba_is]
    places = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": places}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert jit.INTERNALS is not None  # here it is compiled the other way
    product = from_python(product_of_odds)(np.ones(8, np.float32), 0, 8, 0.5)
    assert done.stdout == f"1 {product}\n"
    assert list(folder.rglob("*.nbc"))


@pytest.mark.parametrize("takes_long", [False, True])
def test_a_long_compilation_says_so_once(takes_long, monkeypatch, capsys):
    """A long one here is one that ends after the timer has gone off."""
    compiled.keep_programs()
    said, say = threading.Semaphore(0), compiled._say_compiling
    say.cache_clear()
    monkeypatch.setattr(compiled, "_LONG_S", 0.01 if takes_long else 3600)
    monkeypatch.setattr(compiled, "_say_compiling", lambda: (say(), said.release()))
    for _ in range(2):
        compiled.announced(said.acquire if takes_long else lambda: None)
    assert capsys.readouterr().err.count("compiling once for this machine") == takes_long


def test_what_is_only_loaded_is_not_announced(monkeypatch):
    compiled.keep_programs()
    timers, timer = [], threading.Timer
    monkeypatch.setattr(
        threading, "Timer", lambda *arguments: timers.append(1) or timer(*arguments)
    )
    assert [(loop_is_found(), len(timers)) for _ in range(3)] == [(False, 1), (True, 1), (True, 1)]


def test_all_that_jax_compiles_is_counted_once():
    """Also the programs of single operations, which otherwise count as work of the first method
    that needs them.
    """

    def seconds(work):
        before, begin = compiled.compile_seconds(), time.perf_counter()
        work()
        return compiled.compile_seconds() - before, time.perf_counter() - begin

    numbers = np.arange(8, dtype=np.float32)
    operation, program = jax.jit(lambda x: jnp.sort(x) + 1), jax.jit(lambda x: jnp.sort(x) + 2)
    for work in lambda: operation(numbers), lambda: compiled.call(program, numbers):
        first, second = seconds(work), seconds(work)
        assert 0 < first[0] <= first[1] and second[0] == 0


def test_loops_over_sites_use_the_longest_vectors_that_the_processor_has():
    """Goes red where a version of llvmlite or LLVM no longer takes the attribute."""
    if not llvm.get_host_cpu_features().get("avx512vl"):
        pytest.skip("this processor has no vectors of 512 bits")
    product = from_python(product_of_odds)
    product(np.ones(64, np.float32), 0, 64, 0.5)
    for assembly in product.inspect_asm().values():
        assert "zmm" in assembly
