# The public names, for editors and type checkers, and for `lazy_loader`, which imports their modules on first use.

from .errors import InputError as InputError
from .instances.graph import Graph as Graph
from .problems import Linear as Linear
from .problems import Problem as Problem
from .problems import at_least as at_least
from .problems import at_most as at_most
from .problems import coloring as coloring
from .problems import exactly as exactly
from .problems import from_bqm as from_bqm
from .problems import from_cqm as from_cqm
from .problems import ising as ising
from .problems import linear as linear
from .problems import maxclique as maxclique
from .problems import maxcut as maxcut
from .problems import mis as mis
from .problems import one_hot as one_hot
from .problems import potts as potts
from .problems import qubo as qubo
from .problems import register_problem as register_problem
from .problems import vertex_cover as vertex_cover
from .problems.density import from_log_density as from_log_density
from .sampling.sample import sample as sample
from .sampling.samples import Samples as Samples
from .solving.result import Result as Result
from .solving.solve import solve as solve
from .version import __version__ as __version__
