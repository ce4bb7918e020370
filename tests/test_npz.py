"""Whatever byte of an `.npz` file is wrong, readers say so or find nothing amiss; no other error
comes through.
"""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sl_discs.support.documents import read_document, read_npz, write_document
from sl_discs.support.errors import InputError


# Long arrays are read piece by piece: NumPy then sees a damaged header before the checksum tells.
@pytest.mark.filterwarnings("ignore:Data type alias:DeprecationWarning")
@pytest.mark.parametrize("length", [3, 50_000])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damage_is_refused_or_without_effect(save, length, tmp_path):
    path, file = tmp_path / "damaged.npz", io.BytesIO()
    save(file, counts=np.arange(length), text=np.array("some text"))
    whole = file.getvalue()
    refused = set()
    for place in {*range(0, 300, 2), *range(len(whole) - 600, len(whole), 2)} & set(
        range(len(whole))
    ):
        for flipped in (1, 0xFF):
            damaged = bytearray(whole)
            damaged[place] ^= flipped
            path.write_bytes(bytes(damaged))
            try:
                read_npz(path)
            except InputError as error:
                assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
                refused.add(type(error.__cause__))
    assert len(refused) >= 3


def with_a_text(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "text")


def with_a_shape(path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|u1", "fortran_order": False, "shape": (10**30,)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", header.getvalue())


STRANGE = {
    "absent": lambda path: None,
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "empty": Path.touch,
    "an array": lambda path: np.save(path.open("wb"), np.arange(3)),
    "text": lambda path: path.write_text("variable,probability"),
    "a pickle": lambda path: path.write_bytes(pickle.dumps([1])),
    "an array of objects": lambda path: np.savez(path, a=np.array([{}])),
    "another file inside": with_a_text,
    "a bomb": lambda path: np.savez_compressed(path, a=np.zeros(2**27, np.int8)),
    "a shape of 10^30": with_a_shape,
}


@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
def test_what_is_no_archive_is_refused(make, tmp_path):
    path = tmp_path / "strange.npz"
    make(path)
    with pytest.raises(InputError) as error:
        read_npz(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_a_document_comes_back(tmp_path):
    path = write_document(tmp_path / "a.npz", "test 1", {"a": np.arange(3)}, {"b": [2, None]})
    arrays, values = read_document(path, "test 1")
    assert arrays["a"].tolist() == [0, 1, 2] and values == {"b": [2, None]}
    with pytest.raises(ValueError):
        read_document(path, "test 2")
