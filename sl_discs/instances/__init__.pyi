# The public names, for editors and type checkers, and for `lazy_loader`, which imports their
# modules on first use.

from .archive import read_archive as read_archive
from .archive import read_forms as read_forms
from .archive import write_archive as write_archive
from .archive import write_forms as write_forms
from .dataset import load_dataset as load_dataset
from .form import QuadraticForm as QuadraticForm
from .formats import Instance as Instance
from .formats import read_instances as read_instances
from .graph import Dataset as Dataset
from .graph import Graph as Graph
from .graph import graph_from_networkx as graph_from_networkx
