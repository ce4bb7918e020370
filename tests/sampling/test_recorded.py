"""Recorded runs of many chains."""

import networkx as nx

import sl_discs
from sl_discs.sampling.recorded import RecordedChains


def test_an_engine_that_compiles_each_call_length_compiles_two():
    terms = sl_discs.maxcut(nx.cycle_graph(8)).terms()
    chains = RecordedChains(terms, "metropolis", {"scan": "random"}, 4, engine="reference")
    lengths = [len(part.values) for part in chains.play(1.0, 250)]
    assert sum(lengths) == 250 and len(lengths) > 2 and len(set(lengths)) <= 2
