"""Method `exact`: independent draws by enumeration or tree decomposition; see `sl_discs.sampling.exact`."""

from __future__ import annotations

import math

import numpy as np

from sl_discs.models.enumeration import enumerate_values
from sl_discs.models.potts import PottsTerms
from sl_discs.sampling.drawn import Budget, Drawn
from sl_discs.sampling.exact import exact
from sl_discs.sampling.layout import Terms
from sl_discs.sampling.options import Options
from sl_discs.sampling.packed import packed

_DRAWS_IN_TIME = 10_000


def draw(terms: Terms, temperature: float, options: Options, budget: Budget) -> Drawn:
    """The requested number of exact draws; 10,000 if there is a time limit.

    Args:
      terms: of the model.
      temperature: tau > 0.
      options: number of draws, seed.
      budget: progress.
    """
    each, most = options.draws_each or -(-_DRAWS_IN_TIME // options.groups), 2
    if isinstance(terms, PottsTerms):
        law = enumerate_values(terms, temperature)
        states, log_z = law.sample(np.random.default_rng(options.seed), each * options.groups), law.log_z
        how, most = {"states": math.prod(terms.num_values)}, max(terms.num_values)
    else:
        found = exact(terms, temperature, each * options.groups, options.seed)
        states, log_z = found.states, found.log_z
        how = {"states": 2**terms.num_sites} if found.width is None else {"width": found.width}
    budget.say(each * options.groups)
    bits = packed(states.reshape(options.groups, each, -1), most)
    return Drawn(bits, "none", how, log_z=(log_z, 0.0), exact=True)
