"""What cannot be held or numbered is refused before it is made; the memory that there is, is
mocked.
"""

import numpy as np
import pytest

import sl_discs
from sl_discs import InputError
from sl_discs.solving import rounds
from sl_discs.support import memory
from sl_discs.support.memory import GIB, check_memory, usable_memory


@pytest.fixture
def with_memory(monkeypatch):
    """A machine with `size` bytes to use."""
    return lambda size: monkeypatch.setattr(memory, "usable_memory", lambda: size)


def test_what_fits(with_memory, monkeypatch):
    monkeypatch.setattr(
        memory, "_limit_of_cgroup", lambda: 2**24
    )  # what a batch system allows a job
    assert usable_memory() == int(0.8 * 2**24)
    with_memory(3 * GIB)
    check_memory("this", 3 * GIB, "take less")
    with pytest.raises(InputError):
        check_memory("this", 4 * GIB, "take less")
    with_memory(None)
    check_memory("this", 2**70, "take less")


class Sparse:
    """A SciPy matrix of this shape, as far as anybody may look."""

    shape = (2**40, 2**40)

    def tocoo(self, copy):
        raise AssertionError("looked at")


def triangle():
    return sl_discs.mis([(0, 1), (1, 2), (0, 2)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sl_discs.mis([(0, 2**40)]), "mis: 1099511627777 nodes, nearly all without a term"),
        (lambda: sl_discs.qubo(Sparse()), "qubo: 1099511627776 variables; at most"),
        (
            lambda: sl_discs.mis(np.array([[0, 2**63 + 1]], np.uint64), num_nodes=5),
            r"edge 0 is \(0, 92233720368547",
        ),
        (
            lambda: sl_discs.solve(triangle(), steps=10**12),
            r"steps is 10{12}; expected a whole number from 1 to 2\^31",
        ),
        (
            lambda: sl_discs.solve(triangle(), chains=10**9),
            r"3 terms\) with 1,000,000,000 chains of 3,000 steps would",
        ),
        (
            lambda: sl_discs.solve(triangle(), "sl_gwg", steps=10**9),
            "of 1,000,000,000 steps would take about .* GiB",
        ),
        (
            lambda: sl_discs.solve(sl_discs.mis([(0, 1)], num_nodes=2**25 + 1)),
            r"33,554,433 variables, 1 terms\) .* would take about",
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_made(make, message, with_memory, monkeypatch):
    with_memory(16 * GIB)
    monkeypatch.setattr(rounds, "annealed_terms", lambda *_: pytest.fail("the model was made"))
    with pytest.raises(InputError):
        make()


def test_matrices_that_do_not_fit_are_refused_before_they_are_made(with_memory):
    """A clique is a dense problem however few edges there are."""
    graph = sl_discs.maxclique([(0, 1)], num_nodes=1_000)
    with_memory(5 * 2**20)
    with pytest.raises(
        InputError,
    ):
        sl_discs.solve(graph, chains=2, steps=10, presolve=False)
