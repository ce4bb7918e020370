"""The arrays of chains on one model, quadratic or not."""

from __future__ import annotations

from collections.abc import Sequence

from sl_discs.engines.contract import Batch
from sl_discs.experiment.packing import Shape, build_batch, build_density_batch
from sl_discs.models.base import Model
from sl_discs.models.coefficients import Coefficients
from sl_discs.models.density import Density
from sl_discs.samplers.base import Sampler

Terms = Coefficients | Density


def lay_out(terms: Terms, sampler: Sampler, names: Sequence[int], shape: Shape, seed: int) -> tuple[Model, Batch]:
    """The model and the batch of instances that are all alike.

    Args:
      terms: of the model.
      sampler: that will be run.
      names: of the instances, which name their keys.
      shape: of the batch.
      seed: of the chains.
    """
    if isinstance(terms, Density):
        return build_density_batch(terms, sampler, names, shape, seed)
    return build_batch([terms] * len(names), names, shape, seed)
