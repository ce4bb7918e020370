"""Kinds of errors that a program may want to tell apart; all are `InputError`, a `ValueError`."""

import sys

import networkx as nx
import pytest

import sl_discs
from sl_discs import InputError, MissingExtra


def test_a_missing_package_is_a_missing_extra(monkeypatch):
    samples = sl_discs.sample(sl_discs.mis(nx.path_graph(3)), 1.0, draws=8)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra) as error:
        samples.to_dataframe()
    assert isinstance(error.value, ImportError) and isinstance(error.value, InputError)
    for name in ("dimod", "blackjax"):
        monkeypatch.setitem(sys.modules, "blackjax.base", None)
        monkeypatch.setitem(sys.modules, "dimod", None)
        monkeypatch.delitem(sys.modules, f"sl_discs.{name}", raising=False)
        with pytest.raises(MissingExtra):
            __import__(f"sl_discs.{name}")
