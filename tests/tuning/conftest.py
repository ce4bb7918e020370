import networkx as nx
import numpy as np
import pytest

from sl_discs.instances.dataset import Dataset
from sl_discs.instances.graph import Graph


@pytest.fixture
def dataset():
    graphs = []
    for seed in range(3):
        graph = nx.gnp_random_graph(40, 0.2, seed=seed)
        graphs.append(Graph.from_arrays(f"g{seed}", 40, np.array(graph.edges)))
    return Dataset("mis/small", "mis", "generated", "small", graphs, [0, 1, 2], 3)
