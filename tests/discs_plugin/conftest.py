"""DISCS for tests, where a checkout of it is importable."""

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from sl_discs import discs_plugin
from sl_discs.discs_plugin import compat, modules


def forget_discs():
    """Takes every trace of discs and of the plugin's finders out of the interpreter."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "discs"]:
        del sys.modules[name]
    ours = (modules.PluginFinder, compat.Finder)
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, ours)]
    importlib.invalidate_caches()


@pytest.fixture
def no_discs(monkeypatch):
    """An interpreter in which no discs is importable; tests may put one first on sys.path."""
    forget_discs()
    monkeypatch.setattr(
        sys, "path", [entry for entry in sys.path if not (Path(entry) / "discs").is_dir()]
    )
    yield
    forget_discs()


@pytest.fixture
def discs():
    """The real DISCS, registered; skips where there is none."""
    forget_discs()
    spec = importlib.util.find_spec("discs")
    if spec is None:
        pytest.skip(
            "DISCS is not importable: put a checkout of google-research/discs on PYTHONPATH"
        )
    if not all(importlib.util.find_spec(name) for name in ("flax", "optax")):
        pytest.skip("DISCS needs flax and optax: pip install -e '.[discs]' in the clone")
    discs_plugin.register(compat=True)
    yield Path(spec.submodule_search_locations[0])
    forget_discs()
