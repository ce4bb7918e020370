"""Problem instances: DISCS's own files, portable archives and seeded generators, all of which produce a `Graph`
or a `QuadraticForm`.
"""

from sl_discs.instances.archive import read_archive, read_forms, write_archive, write_forms
from sl_discs.instances.dataset import Dataset, load_dataset
from sl_discs.instances.form import QuadraticForm
from sl_discs.instances.formats import Instance, read_instances
from sl_discs.instances.graph import Graph, graph_from_networkx

__all__ = [
    "Dataset",
    "Graph",
    "Instance",
    "QuadraticForm",
    "graph_from_networkx",
    "load_dataset",
    "read_archive",
    "read_forms",
    "read_instances",
    "write_archive",
    "write_forms",
]
