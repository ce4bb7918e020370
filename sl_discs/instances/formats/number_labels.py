"""Nodes labelled by arbitrary whole numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def number_labels(u: np.ndarray, v: np.ndarray) -> tuple[Sequence[int], tuple[np.ndarray, np.ndarray]]:
    """The distinct numbers in ascending order, and u and v as positions among them."""
    labels, index = np.unique(np.concatenate([u, v]), return_inverse=True)
    index = index.reshape(-1)
    gapless = len(labels) and labels[-1] - labels[0] == len(labels) - 1
    names = range(int(labels[0]), int(labels[-1]) + 1) if gapless else tuple(labels.tolist())
    return names, (index[: len(u)], index[len(u) :])
