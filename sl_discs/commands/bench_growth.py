"""Command: measures how the cost of a step grows with the number of sites at fixed degree, and with the degree.

sl-discs bench growth --samplers=gwg,metropolis --output=growth

MIS on random graphs at constant temperature, 32 chains. Results are printed and saved as OUTPUT.json and OUTPUT.png.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from absl import flags

from sl_discs.atomic import check_file, write_atomically
from sl_discs.benchmark import growth
from sl_discs.benchmark.choices import ENGINES, check_choice
from sl_discs.benchmark.contenders import NotPlayed
from sl_discs.benchmark.peers import describe_machine
from sl_discs.command import run_command
from sl_discs.engines.devices import one_device_per_core
from sl_discs.experiment.progress import progress_bar
from sl_discs.results.canvas import can_draw, or_warn
from sl_discs.samplers import known_samplers

# The command's own set of flags: importing this module adds nothing to the flags of another command.
FLAGS = flags.FlagValues()
_SAMPLERS = flags.DEFINE_list(
    "samplers", ["gwg", "path_auxiliary", "metropolis"], "Samplers of this package.", flag_values=FLAGS
)
_CHOSEN = flags.DEFINE_list("engines", list(ENGINES), "Engines.", flag_values=FLAGS)
_LARGEST = flags.DEFINE_integer(
    "largest", max(growth.SIZES), "Largest number of sites.", lower_bound=min(growth.SIZES), flag_values=FLAGS
)
_CHAINS = flags.DEFINE_integer("chains", 32, "Chains.", lower_bound=1, flag_values=FLAGS)
_OUTPUT = flags.DEFINE_string(
    "output", "growth", "Results are saved as OUTPUT.json and OUTPUT.png.", flag_values=FLAGS
)


def run(_) -> int:
    """Measures all points, prints them and saves the figure."""
    one_device_per_core()
    check_choice("samplers", _SAMPLERS.value, known_samplers())
    check_choice("engines", _CHOSEN.value, ENGINES)
    table, picture = (check_file(f"{_OUTPUT.value}.{suffix}") for suffix in ("json", "png"))
    draws = can_draw()
    sizes = [(size, growth.DEGREE) for size in growth.SIZES if size <= _LARGEST.value]
    fixed = min(growth.NUM_SITES, _LARGEST.value)
    degrees = [(fixed, degree) for degree in growth.DEGREES if 3 * degree < fixed]
    pairs = [(sampler, engine) for sampler in _SAMPLERS.value for engine in _CHOSEN.value]
    found: list[list[growth.Point]] = [[], []]
    with progress_bar(len(pairs) * (len(sizes) + len(degrees)), " points") as progress:
        for points, chosen in zip(found, (sizes, degrees), strict=True):
            for sampler, engine in pairs:
                for num_sites, degree in chosen:
                    try:
                        points.append(growth.measure(sampler, engine, num_sites, degree, _CHAINS.value))
                    except NotPlayed as reason:
                        sys.stdout.write(f"{sampler}: skipped on {engine}: {reason}\n")
                        progress("growth", 1)
                        break
                    progress("growth", 1)
    machine = describe_machine()
    sys.stdout.write(f"{machine}, {_CHAINS.value} chains\n{growth.format_points([*found[0], *found[1]])}\n")
    record = {"machine": machine, "chains": _CHAINS.value, "by_size": growth.as_json(found[0])}
    text = json.dumps(record | {"by_degree": growth.as_json(found[1])}, indent=1)
    figure = or_warn(lambda: growth.draw(found[0], found[1], picture)) if draws else None
    saved = write_atomically(table, lambda file: file.write(text.encode()))
    sys.stdout.write(f"saved {saved}{f' and {figure}' if figure else ''}\n")
    return 0


def main(argv: Sequence[str]) -> int:
    """Exit code 0, or 2 after a one-line message about bad input."""
    return run_command(argv, "", __doc__, FLAGS, run)
