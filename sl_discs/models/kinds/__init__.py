"""Every problem by its name, which is also that of its module here, with one object: `KIND`.

A further problem is a module here and its name in `sl_discs.problem_names`; commands, `sl_discs.<name>`, files,
tables and reports then know it.
"""

from __future__ import annotations

import importlib
from typing import cast

from sl_discs.errors import InputError
from sl_discs.models.graph_kind import GraphKind
from sl_discs.models.kind import Kind
from sl_discs.problem_names import CATEGORICAL, CONSTRAINED, FORM_PROBLEMS, GRAPH_PROBLEMS

_NAMES = (*GRAPH_PROBLEMS, *FORM_PROBLEMS, CONSTRAINED, *CATEGORICAL)
KINDS: dict[str, Kind] = {name: importlib.import_module(f"{__name__}.{name}").KIND for name in _NAMES}
GRAPH_KINDS: dict[str, GraphKind] = {name: cast(GraphKind, KINDS[name]) for name in GRAPH_PROBLEMS}


def register(kind: Kind) -> None:
    """Adds a kind of problem that is not part of the package; InputError where its name is taken."""
    if KINDS.get(kind.name, kind) is not kind:
        raise InputError(f"there is a problem {kind.name!r} already; choose another name")
    KINDS[kind.name] = kind
    if isinstance(kind, GraphKind):
        GRAPH_KINDS[kind.name] = kind


def graph_kind(name: str) -> GraphKind:
    """The problem on graphs of this name; InputError where there is none."""
    if name not in GRAPH_KINDS:
        raise InputError(f"unknown problem {name!r}; known: {', '.join(GRAPH_KINDS)}")
    return GRAPH_KINDS[name]
