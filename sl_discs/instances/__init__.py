"""Problem instances: DISCS's own files, portable archives and seeded generators, all ending in `Graph`."""

from sl_discs.instances.archive import read_archive, write_archive
from sl_discs.instances.dataset import Dataset, load_dataset
from sl_discs.instances.from_networkx import graph_from_networkx
from sl_discs.instances.graph import Graph

__all__ = ["Dataset", "Graph", "graph_from_networkx", "load_dataset", "read_archive", "write_archive"]
