"""Tables, files and figures of a finished experiment, compared with the published numbers."""

from sl_discs.experiment.output import (
    Spread,
    draw_trajectories,
    format_summary,
    paired_differences,
    paired_percent_differences,
    write_results,
)
from sl_discs.experiment.published import PublishedRow, published_row
from sl_discs.experiment.record import ExperimentRecord, InstanceRecord, SamplerRecord
from sl_discs.files import check_writable

__all__ = [
    "ExperimentRecord",
    "InstanceRecord",
    "PublishedRow",
    "SamplerRecord",
    "Spread",
    "check_writable",
    "draw_trajectories",
    "format_summary",
    "paired_differences",
    "paired_percent_differences",
    "published_row",
    "write_results",
]
