"""OR-Library's `bqp` files: several problems "maximise x'Qx" with x in {0, 1}^n and Q symmetric.

The file starts with the number of problems. Each problem is a line `n k` and then k lines `i j q`, with variables
from 1 to n. A line gives both q(i,j) and q(j,i), so it means 2 q x_i x_j if i and j differ, and q x_i if i = j.

Source: J.E. Beasley, OR-Library, page "Unconstrained binary quadratic programming": the sum over all i and all j is
to be maximised, and q(i,j) = q(j,i) as the matrix is symmetric.
"""

from __future__ import annotations

from sl_discs.errors import InputError
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.lines import LineReader
from sl_discs.instances.formats.number_rows import (
    Columns,
    check_count,
    header_counts,
    show,
)
from sl_discs.instances.formats.quadratic_form import both_directions, quadratic_form
from sl_discs.instances.formats.source import Source

_HEADER = "the numbers of variables and coefficients, 'n k'"


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """The models of a file, to be maximised; their name is the file's, with a number from 1 if there are several.

    Raises:
      InputError: a malformed header or line, a variable out of range, a coefficient that is given twice (or in both
        directions), or a number of problems or coefficients that differs from a header.
    """
    reader = LineReader(source, b"")
    number, words = reader.one("the number of problems")
    if len(words) != 1 or not words[0].isdigit() or len(words[0]) > 9 or not int(words[0]):
        raise InputError(f"{source.path}:{number}: {show(b' '.join(words))} is not a number of problems; write one")
    count = int(words[0])
    found: list[Instance] = []
    for k in range(1, count + 1):
        name = source.name if count == 1 else f"{source.name}-{k}"
        form = _read_problem(reader, name)
        found.append(Instance(form, range(1, form.num_variables + 1), "bqp", source.path))
    for lines in reader.groups(1):
        raise InputError(
            f"{source.path}:{lines.numbers[0]}: {show(b' '.join(lines.line(0)))} after the last of {count} problems; "
            "remove it or correct the header"
        )
    return found


def _read_problem(reader: LineReader, name: str) -> QuadraticForm:
    source = reader.source
    number, words = reader.one(_HEADER)
    num_variables, promised = header_counts(source, number, words, (2,), _HEADER)
    rows = Columns(source, ("iif",), "a coefficient, 'i j q'").extend(reader.groups(promised))
    check_count(source, number, promised, len(rows), "coefficients")
    i, j = rows.check_indices(1, num_variables)
    values = rows.arrays()[2]
    return quadratic_form(name, num_variables, i, j, both_directions(i, j, values), rows, maximise=True)
