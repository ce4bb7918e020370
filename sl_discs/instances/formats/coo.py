"""Lists of coefficients `i j v`, as dimod writes a model without offset, to be minimised.

The model is the sum of v x_i x_j, or v x_i if i = j (for spins too); repeated coefficients add up. A comment
`# vartype=BINARY` or `# vartype=SPIN` gives the type of the variables; without it they are binary, or spins if the
problem is `ising`. Labels are arbitrary whole numbers from 0 on; only variables that appear in a line exist.

Source: documentation of dimod (D-Wave Systems), `dimod.serialization.coo`.
"""

from __future__ import annotations

import re

from sl_discs.errors import InputError
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.lines import LineReader
from sl_discs.instances.formats.number_labels import number_labels
from sl_discs.instances.formats.number_rows import Columns, show
from sl_discs.instances.formats.quadratic_form import quadratic_form
from sl_discs.instances.formats.source import Source
from sl_discs.problem_names import FORM_PROBLEMS

VARTYPE = re.compile(rb"^[ \t]*#.*?vartype[:=][ \t]*([-_.a-zA-Z0-9]+)", re.MULTILINE)


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The model of a file, to be minimised.

    Raises:
      InputError: a malformed line, an unknown vartype or two that differ, or no coefficients.
    """
    types = sorted(set(VARTYPE.findall(source.head)))
    if len(types) > 1 or not set(types) <= {b"BINARY", b"SPIN"}:
        raise InputError(f"{source.path}: vartype {show(b' and '.join(types))}; write BINARY or SPIN, and once")
    spins = types == [b"SPIN"] if types else FORM_PROBLEMS.get(problem or "", False)
    rows = Columns(source, ("iif",), "a coefficient, 'i j v'").extend(LineReader(source, b"#").groups())
    if not len(rows):
        raise InputError(f"{source.path}: no coefficients; write lines 'i j v'")
    i, j, values = rows.arrays()
    labels, (i, j) = number_labels(i, j)
    form = quadratic_form(source.name, len(labels), i, j, values, rows, spins=spins, add=True)
    return [Instance(form, labels, "coo", source.path)]
