"""Whatever byte of an `.npz` file is wrong, readers say so or find nothing amiss; no other error comes through."""

import io

import numpy as np
import pytest

from sl_discs.damaged_npz import DAMAGED_NPZ


def content_of(save, length):
    file = io.BytesIO()
    save(file, counts=np.arange(length), text=np.array("some text"))
    return file.getvalue()


# Long arrays are read piece by piece: NumPy then sees a damaged header before the checksum tells.
@pytest.mark.filterwarnings("ignore:Data type alias:DeprecationWarning")
@pytest.mark.parametrize("length", [3, 50_000])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damage_raises_what_is_listed(save, length):
    whole = content_of(save, length)
    places = [*range(300), *range(len(whole) - 600, len(whole))] if len(whole) > 900 else range(len(whole))
    met = set()
    for place in places:
        for flipped in (1, 8, 0xFF):
            damaged = bytearray(whole)
            damaged[place] ^= flipped
            try:
                with np.load(io.BytesIO(bytes(damaged)), allow_pickle=False) as saved:
                    dict(saved)
            except DAMAGED_NPZ as error:
                met.add(type(error))
    assert len(met) >= 3
