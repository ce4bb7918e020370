"""Content hashes of datasets."""

from __future__ import annotations

import hashlib

import numpy as np

from sl_discs.instances.dataset import Dataset


def dataset_digest(dataset: Dataset) -> str:
    """SHA-256 of the sizes, edges and weights of all graphs, in hexadecimal."""
    digest = hashlib.sha256()
    for graph in dataset.graphs:
        digest.update(np.array([graph.num_nodes, len(graph.edges)], np.int64).tobytes())
        digest.update(np.ascontiguousarray(graph.edges).tobytes())
        digest.update(b"" if graph.weights is None else np.ascontiguousarray(graph.weights).tobytes())
    return digest.hexdigest()
