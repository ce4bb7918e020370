"""Draws in the formats of other libraries; errors and formats are those of the methods of `Samples`."""

from __future__ import annotations

import importlib
from collections.abc import Hashable

from sl_discs.errors import InputError


def as_dataframe(samples, value: Hashable):
    """`Samples.to_dataframe`."""
    pandas = _imported("pandas")
    for name in (value, "weight"):
        if name in samples.labels:
            raise InputError(f"{name!r} is also a label; name the column of values with to_dataframe(value=...)")
    frame = pandas.DataFrame(samples.states, columns=pandas.Index(list(samples.labels), tupleize_cols=False))
    frame[value], frame["weight"] = samples.values, samples.weights
    return frame


def as_sample_set(samples):
    """`Samples.to_dimod`."""
    dimod = _imported("dimod")
    kind = dimod.SPIN if samples.spins else dimod.BINARY if samples.num_values is None else dimod.DISCRETE
    energies = -samples.values if samples.maximise else samples.values
    return dimod.SampleSet.from_samples(
        (samples.states, list(samples.labels)), kind, energies, info=samples.summary(), sort_labels=False,
        weight=samples.weights,
    )  # fmt: skip


def as_inference_data(samples):
    """`Samples.to_inference_data`."""
    if samples.log_weights is not None:
        raise InputError("populations have weights, which arviz does not support; use another method")
    arviz = _imported("arviz")
    own = samples.states.reshape(*samples.group_values.shape, -1)
    names = {name: samples.observable(name) for name in ("value", "magnetisation", "overlap")}
    coordinates = {"variable": [str(label) for label in samples.labels]}
    groups = {"posterior": {"x": own, **names}}
    axes = {"coords": coordinates, "dims": {"x": ["variable"]}}
    if hasattr(arviz, "InferenceData"):  # before version 1
        return arviz.from_dict(**groups, **axes)
    return arviz.from_dict(groups, **axes)


def _imported(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"this needs {name}; install it with: pip install {name}") from error
