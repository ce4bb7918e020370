"""CNF: the conflict graph's independence number is the number of clauses that can be satisfied together."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sl_discs.errors import InputError
from sl_discs.instances.graph_files import conflict_graph, read_cnf

LITERAL = st.integers(1, 4).flatmap(lambda v: st.sampled_from([v, -v]))
FORMULA = st.lists(st.lists(LITERAL, max_size=3).map(tuple), min_size=1, max_size=4).filter(any)


def most_satisfied(clauses):
    signs = itertools.product([False, True], repeat=4)
    return max(sum(any((x > 0) == s[abs(x) - 1] for x in clause) for clause in clauses) for s in signs)


def independence_number(graph):
    neighbours = [0] * graph.num_nodes
    for u, v in graph.edges.tolist():
        neighbours[u] |= 1 << v
        neighbours[v] |= 1 << u

    def best(free):
        if not free:
            return 0
        node = free.bit_length() - 1
        rest = free & ~(1 << node)
        return max(best(rest), 1 + best(rest & ~neighbours[node]))

    return best((1 << graph.num_nodes) - 1)


@settings(max_examples=60, deadline=None)
@given(clauses=FORMULA)
def test_independence_number_is_maximum_satisfiability(clauses):
    graph = conflict_graph("f", clauses)
    assert graph.num_nodes == sum(map(len, clauses))
    assert independence_number(graph) == most_satisfied(clauses)
    assert graph.reference == sum(map(bool, clauses))


@settings(max_examples=30, deadline=None)
@given(clauses=FORMULA, breaks=st.randoms(use_true_random=False))
def test_any_layout_of_the_file_reads_the_same(tmp_path_factory, clauses, breaks):
    words = " ".join(" ".join(map(str, (*clause, 0))) for clause in clauses).split(" ")
    body = "".join(word + breaks.choice([" ", "\n", "\nc note\n", "  \t"]) for word in words)
    path = tmp_path_factory.mktemp("cnf") / "f.cnf"
    path.write_text(f"c first\np cnf 4 {len(clauses)} \n{body}\n%\n0\n\n")
    assert read_cnf(path) == clauses


def test_nodes_follow_the_clauses():
    graph = conflict_graph("f", [(1, 2, 3), (-1, 2, -3)])
    assert graph.edges.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [2, 5], [3, 4], [3, 5], [4, 5]]
    with pytest.raises(InputError, match="empty"):
        conflict_graph("f", [()])
