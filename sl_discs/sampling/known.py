"""Method `exact`: independent draws by enumeration or tree decomposition; see `sl_discs.sampling.exact`."""

from __future__ import annotations

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
    each = options.draws_each or -(-_DRAWS_IN_TIME // options.groups)
    found = exact(terms, temperature, each * options.groups, options.seed)
    budget.say(each * options.groups)
    how = {"states": 2**terms.num_sites} if found.width is None else {"width": found.width}
    bits = packed(found.states.reshape(options.groups, each, -1))
    return Drawn(bits, "none", how, log_z=(found.log_z, 0.0), exact=True)
