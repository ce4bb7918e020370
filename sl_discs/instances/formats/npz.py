"""Our own `.npz` archives: of graphs (`instances.archive`) or of quadratic models (`instances.form_archive`).

Nodes and variables are labelled from 0 on. An archive with an array `couplings` holds models.
"""

from __future__ import annotations

from sl_discs.files import read_npz
from sl_discs.instances.archive import read_archive, read_forms
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.source import Source


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """All graphs or models of an archive, in its order.

    Raises:
      InputError: the file is not an archive, is damaged or has another layout, or it unpacks to more than 256 MiB and
        to more than a hundred times its size.
    """
    if read_npz(source.path, wanted=("couplings",)):
        return [Instance(form, range(form.num_variables), "npz", source.path) for form in read_forms(source.path)]
    return [Instance(graph, range(graph.num_nodes), "npz", source.path) for graph in read_archive(source.path)]
