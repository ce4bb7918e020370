"""Tables, files and figures of a finished experiment, compared with the published numbers."""

from sl_discs.atomic import check_writable
from sl_discs.experiment.record import ExperimentRecord, InstanceRecord, SamplerRecord
from sl_discs.results.figure import draw_trajectories
from sl_discs.results.files import write_results
from sl_discs.results.paired import paired_differences, paired_percent_differences
from sl_discs.results.published import PublishedRow, published_row
from sl_discs.results.summary import Spread
from sl_discs.results.table import format_summary

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
