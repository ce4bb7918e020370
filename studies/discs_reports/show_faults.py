"""Runs the tests of all reports beside a checkout of DISCS, and prints red or green for each.

    python studies/discs_reports/show_faults.py

Red: the fault is there. The checkout is the package `discs` on PYTHONPATH, which `register` lets run
on current JAX. `--mended` applies this project's corrections of samplers first: those that
`discs_plugin/fixes.py` has then turn green, which shows that a test finds its fault and no other.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from sl_discs.commands.command import Command, own_flags
from sl_discs.support.terminal import say

HERE = Path(__file__).parent
FLAGS, define = own_flags()
define.boolean("mended", False, "Apply this project's corrections to DISCS's samplers first.")


def _main(_) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider"]
    command += ["-c", os.devnull, f"--rootdir={HERE}", *map(str, sorted(HERE.glob("*_test.py")))]
    environment = os.environ | {"SL_DISCS_MENDED": "1" * FLAGS.mended}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    outcomes = re.findall(
        r"^(PASSED|FAILED|ERROR) (?:.*/)?(\S+?\.py(?:::.*?)?)(?: - .*)?$", done.stdout, re.M
    )
    for outcome, test in outcomes:
        say(f"{'green' if outcome == 'PASSED' else 'red':6}{test}")
    return 0 if outcomes else 1


main = Command("", __doc__, FLAGS, _main, program="python")


if __name__ == "__main__":
    sys.exit(main(sys.argv))
