"""What every run of tests has, also of those of studies and benchmarks: kept compiled programs, and
a limit for each test.
"""

import gc
import hashlib
import os
import shutil
import tempfile

import hypothesis
import jax
import pytest
from limits import LIMIT_S, SLOW_LIMIT_S, ended_after
from llvmlite import binding

from sl_discs.support.cache import cache_folder

# Limits in tests are in steps or CPU-seconds, so that other work on the machine fails none. What
# still has seconds of wall time, such as the time-outs of processes, is ten minutes, and only ends
# what would never end.
hypothesis.settings.register_profile("sl_discs", deadline=None)
hypothesis.settings.load_profile("sl_discs")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Sets the limit of the test, which all of its fixtures share."""
    is_long = any(item.get_closest_marker(name) for name in ("slow", "published"))
    with ended_after(SLOW_LIMIT_S if is_long else LIMIT_S):
        return (yield)


LEAST = "jax_persistent_cache_min_compile_time_secs"
# A folder with more files of compiled code is begun anew; all tests need a tenth of them, in some
# 50 MB.
_MOST_KEPT = 50_000


def pytest_configure(config):
    """Has the native loops and XLA's programs compiled once, for all workers, commands and later
    runs of the tests.

    Nothing stale is found: loops are named by a digest of their sources, programs by all that they
    are compiled from, and the folder by the processor. `pytest --cache-clear` removes it.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    processor = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    name = f"compiled-{hashlib.sha256(processor.encode()).hexdigest()[:16]}"
    folder = config.cache.mkdir(name) if config.pluginmanager.hasplugin("cacheprovider") else None
    if folder and sum(1 for _ in folder.rglob("*")) > _MOST_KEPT:
        shutil.rmtree(folder, ignore_errors=True)
    if folder is None or cache_folder(folder) is None:  # others could have written to it
        temporary = tempfile.TemporaryDirectory(prefix="sl_discs-compiled-")
        config.add_cleanup(temporary.cleanup)
        folder = temporary.name
    os.environ["NUMBA_CACHE_DIR"] = f"{folder}/loops"
    # For processes that tests begin; this one has read its environment already.
    for name, value in (("jax_compilation_cache_dir", f"{folder}/programs"), (LEAST, 0)):
        os.environ.setdefault(name.upper(), str(value))
        jax.config.update(name, value)


def pytest_collection_finish():
    """Leaves modules, and the lists of tests, out of every later search for garbage."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def programs_of_one_file():
    """Has JAX forget the programs of a file of tests after it: those of all files would take
    gigabytes.
    """
    yield
    jax.clear_caches()


def pytest_sessionstart():
    """Opens JAX's devices, whose number commands choose in a process where they are not
    open yet.
    """
    jax.local_devices()
