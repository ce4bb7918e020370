"""Command: compares all base samplers on graphs, at equal steps and at equal CPU time, and on an Ising lattice.

sl-discs study samplers [--output=results/samplers] [--samplers=metropolis,gwg] [--cases=mis-er-0.05]

The temperatures of each sampler are chosen on other graphs of the same family; its other settings are the defaults.
acs, block_gibbs and pdhams are only played on the lattice, since their steps are too expensive on dense graphs.
Finished cells are kept in OUTPUT/cells, so that a stopped command continues where it left off. All cells take about
three hours of one core, most of them for samplers of the reference engine on the lattice. Times are CPU times of the
whole process without compilation.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from absl import flags

from sl_discs.atomic import check_writable
from sl_discs.benchmark.cases import CASES
from sl_discs.benchmark.choices import check_choice
from sl_discs.command import run_command
from sl_discs.samplers.registry import is_localized, known_samplers
from sl_discs.studies import samplers

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_OUTPUT = flags.DEFINE_string("output", "results/samplers", "Folder of the page and the cells.", flag_values=FLAGS)
_SAMPLERS = flags.DEFINE_list(
    "samplers",
    None,
    "Samplers; default: all base samplers but bipartite_gibbs, which graphs do not suit.",
    flag_values=FLAGS,
)
_CASES = flags.DEFINE_list("cases", list(samplers.FULL.cases), "Families of graphs.", flag_values=FLAGS)


def run(_: list[str]) -> int:
    """Runs all cells and prints the page."""
    every = known_samplers()
    chosen = _SAMPLERS.value or [name for name in every if not is_localized(name) and name != "bipartite_gibbs"]
    check_choice("samplers", chosen, every)
    check_choice("cases", _CASES.value, [name for name in CASES if CASES[name].problem in samplers.UNITS])
    folder = check_writable(_OUTPUT.value)
    text = samplers.run(folder, chosen, samplers.FULL._replace(cases=tuple(_CASES.value)))
    sys.stdout.write(f"\n{text}\nsaved {folder / 'samplers.md'}\n")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""
    return run_command(argv, "", __doc__, FLAGS, run)
