# The public names, for editors and type checkers, and for `lazy_loader`, which imports their
# modules on first use.

from .experiment.experiment import Experiment as Experiment
from .experiment.experiment import run as run
from .instances.graph import Graph as Graph
from .problems.density import from_log_density as from_log_density
from .problems.forms import from_bqm as from_bqm
from .problems.forms import ising as ising
from .problems.forms import qubo as qubo
from .problems.from_file import read as read
from .problems.graphs import maxclique as maxclique
from .problems.graphs import maxcut as maxcut
from .problems.graphs import mis as mis
from .problems.graphs import register_problem as register_problem
from .problems.graphs import vertex_cover as vertex_cover
from .problems.problem import Problem as Problem
from .sampling.draw_samples import sample as sample
from .sampling.samples import Samples as Samples
from .solving.answers import read_answers as read_answers
from .solving.result import Result as Result
from .solving.solver import solve as solve
from .support.errors import FormatError as FormatError
from .support.errors import InputError as InputError
from .support.errors import MissingExtra as MissingExtra
from .support.errors import NotSupported as NotSupported

__version__: str
