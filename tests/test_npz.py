"""Whatever byte of an `.npz` file is wrong, readers say so or find nothing amiss; no other error comes through."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sl_discs import files
from sl_discs.errors import InputError
from sl_discs.files import read_document, read_npz, write_document


def content_of(save, length):
    file = io.BytesIO()
    save(file, counts=np.arange(length), text=np.array("some text"))
    return file.getvalue()


# Long arrays are read piece by piece: NumPy then sees a damaged header before the checksum tells.
@pytest.mark.filterwarnings("ignore:Data type alias:DeprecationWarning")
@pytest.mark.parametrize("length", [3, 50_000])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damage_is_refused_or_without_effect(save, length, tmp_path):
    path = tmp_path / "damaged.npz"
    whole = content_of(save, length)
    places = [*range(300), *range(len(whole) - 600, len(whole))] if len(whole) > 900 else range(len(whole))
    met = set()
    for place in places:
        for flipped in (1, 0xFF):
            damaged = bytearray(whole)
            damaged[place] ^= flipped
            path.write_bytes(bytes(damaged))
            try:
                read_npz(path)
            except InputError as error:
                assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
                met.add(type(error.__cause__))
    assert len(met) >= 3


def bzip2(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.npy", bytes(2**20))


def with_a_text(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "text")


STRANGE = {
    "absent": (lambda path: None, "no such file"),
    "a folder": (Path.mkdir, "a folder"),
    "a pipe": (os.mkfifo, "not a regular file"),
    "empty": (Path.touch, "not an .npz archive"),
    "an array": (lambda path: np.save(path.open("wb"), np.arange(3)), "not an .npz archive"),
    "a pickle": (lambda path: path.write_bytes(pickle.dumps([1])), "not an .npz archive"),
    "an array of objects": (lambda path: np.savez(path, a=np.array([{}])), "Object arrays cannot be loaded"),
    "a bomb": (lambda path: np.savez_compressed(path, a=np.zeros(2**22, np.int8)), "unpacks to 4 MiB"),
    "blocks of any size": (bzip2, "packed in another way"),
    "another file inside": (with_a_text, "it holds other files"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_what_is_no_archive_is_refused_without_unpacking_it(case, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_UNPACKED_BYTES", 2**20)
    make, words = STRANGE[case]
    path = tmp_path / "strange.npz"
    make(path)
    with pytest.raises(InputError, match=words) as error:
        read_npz(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(InputError, match="File name too long"):
        read_npz(tmp_path / ("x" * 300 + ".npz"))


def test_whatever_is_written_can_be_read(tmp_path, monkeypatch):
    """Equal numbers compress a thousand times, which a reader takes for a bomb."""
    monkeypatch.setattr(files, "_UNPACKED_BYTES", 2**20)
    path = write_document(tmp_path / "zeros.npz", "test 1", {"a": np.zeros(2**22, np.int8)}, {"b": 2})
    arrays, values = read_document(path, "test 1")
    assert len(arrays["a"]) == 2**22 and values == {"b": 2}
