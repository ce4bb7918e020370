"""File formats for graphs and quadratic models, one module per format; formats are recognised by content."""

from sl_discs.instances.formats.instance import Instance
from sl_discs.instances.formats.read import READERS, read_instances

__all__ = ["READERS", "Instance", "read_instances"]
