"""Command: compares sampling methods with tempering, on targets whose distribution is known.

sl-discs study laws --profile=cpu --output=results/laws

It reports the errors of all methods at equal CPU time, and the CPU time that tempering needs for the same error,
divided by the method's own. Finished cells are kept in OUTPUT/cells, so that a stopped command continues where it
left off; tables and figures in OUTPUT use all cells that the command names. Times are CPU times of the whole process
without compilation; on a shared machine, `taskset -c 0` keeps it on one core.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from sl_discs.atomic import check_writable
from sl_discs.benchmark.choices import check_choice
from sl_discs.checks import real
from sl_discs.command import run_command
from sl_discs.errors import InputError
from sl_discs.studies import laws
from sl_discs.studies.laws_methods import METHODS
from sl_discs.studies.laws_targets import TARGETS

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_OUTPUT = flags.DEFINE_string("output", "results/laws", "Folder of cells, tables and figures.", flag_values=FLAGS)
_PROFILE = flags.DEFINE_enum(
    "profile",
    "smoke",
    list(laws.PROFILES),
    "Size: smoke, a minute; cpu, about an hour on one core; long, a day.",
    flag_values=FLAGS,
)
_TARGETS = flags.DEFINE_list("targets", None, "Targets; default: those of the profile.", flag_values=FLAGS)
_METHODS = flags.DEFINE_list("methods", None, "Methods; default: those of the profile.", flag_values=FLAGS)
_SECONDS = flags.DEFINE_list("seconds", None, "Time limits; default: those of the profile.", flag_values=FLAGS)
_SEEDS = flags.DEFINE_integer(
    "seeds", None, "Number of seeds per cell; default: that of the profile.", lower_bound=1, flag_values=FLAGS
)


def _chosen() -> laws.Profile:
    profile = laws.PROFILES[_PROFILE.value]
    if _TARGETS.value is not None:
        check_choice("targets", _TARGETS.value, TARGETS)
        profile = profile._replace(targets=_TARGETS.value, duels=[], plane=[])
    if _METHODS.value is not None:
        check_choice("methods", _METHODS.value, METHODS)
        profile = profile._replace(methods=_METHODS.value)
    if _SECONDS.value is not None:
        try:
            seconds = [float(one) for one in _SECONDS.value]
        except ValueError:
            raise InputError(f"seconds are {','.join(_SECONDS.value)}; expected numbers", "seconds") from None
        seconds = [real("seconds", one, above=0) for one in seconds]
        profile = profile._replace(seconds=seconds, others=seconds)
    return profile if _SEEDS.value is None else profile._replace(seeds=_SEEDS.value)


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""

    def body(_: list[str]) -> int:
        laws.run(_chosen(), check_writable(_OUTPUT.value))
        return 0

    return run_command(argv, "", __doc__, FLAGS, body)
