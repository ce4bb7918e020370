"""What cannot be held or numbered is refused before it is made; the memory that there is, is
mocked.
"""

import pytest

import sl_discs
from sl_discs import InputError
from sl_discs.solving import policy
from sl_discs.support import memory
from sl_discs.support.memory import GIB, check_memory, usable_memory


@pytest.fixture
def with_memory(monkeypatch):
    """A machine with `size` bytes to use."""
    return lambda size: monkeypatch.setattr(memory, "usable_memory", lambda: size)


def test_what_fits(with_memory, monkeypatch, tmp_path):
    limits = [tmp_path / name for name in ("missing", "none", "limit")]
    limits[1].write_text("max\n")
    limits[2].write_text(f"{2**24}\n")
    monkeypatch.setattr(memory, "_LIMITS", limits)  # what a batch system allows a job
    assert usable_memory() == int(0.8 * 2**24)
    with_memory(3 * GIB)
    check_memory("this", 3 * GIB, "take less")
    with pytest.raises(InputError):
        check_memory("this", 4 * GIB, "take less")
    with_memory(None)
    check_memory("this", 2**70, "take less")


@pytest.mark.parametrize("sizes", [{"chains": 10**9}, {"sampler": "sl_gwg", "steps": 10**9}])
def test_what_does_not_fit_is_refused_before_it_is_made(sizes, with_memory, monkeypatch):
    """tests/refusals has more of them."""
    with_memory(16 * GIB)
    monkeypatch.setattr(policy, "annealed_terms", lambda *_: pytest.fail("the model was made"))
    with pytest.raises(InputError):
        sl_discs.solve(sl_discs.mis([(0, 1), (1, 2), (0, 2)]), **sizes)
