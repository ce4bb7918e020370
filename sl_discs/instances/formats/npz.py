"""Our own `.npz` archives: of graphs (`instances.archive`) or of quadratic models (`instances.form_archive`).

Nodes and variables are labelled from 0 on. An archive with an array `couplings` holds models.
"""

from __future__ import annotations

import zipfile

from sl_discs.damaged_npz import DAMAGED_NPZ
from sl_discs.errors import InputError
from sl_discs.instances.archive import read_archive
from sl_discs.instances.form_archive import read_forms
from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.source import Source

# Limits like those of other compressed files, but larger, since an array of equal weights compresses 1000 to 1.
_UNPACKED_BYTES, _UNPACKED_RATIO = 2**28, 100


def read(source: Source, problem: str | None = None) -> list[Instance]:
    """All graphs or models of an archive, in its order.

    Raises:
      InputError: the file is not an archive, is damaged or has another layout, or it unpacks to more than 256 MiB and
        to more than a hundred times its size.
    """
    try:
        with zipfile.ZipFile(source.path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            models = "couplings.npy" in archive.namelist()
    except (OSError, *DAMAGED_NPZ) as error:
        raise InputError(f"{source.path}: not an .npz archive, or cut short ({error}); copy it again") from error
    limit = max(_UNPACKED_BYTES, _UNPACKED_RATIO * source.path.stat().st_size)
    if unpacked > limit:
        raise InputError(f"{source.path}: unpacks to {unpacked >> 20} MiB, far beyond its own size; make it again")
    if models:
        return [Instance(form, range(form.num_variables), "npz", source.path) for form in read_forms(source.path)]
    return [Instance(graph, range(graph.num_nodes), "npz", source.path) for graph in read_archive(source.path)]
