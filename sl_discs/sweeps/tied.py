"""Program: becomes another program, which is killed when the process that started it ends for any reason.

python -m sl_discs.sweeps.tied PARENT COMMAND...

A worker that is killed outright cannot stop its run; without this, the run would continue alongside that of the
worker that takes it over. Only Linux supports it; elsewhere the run continues.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Ties this process to its parent, whose number comes first, and becomes the program."""
    parent, *command = arguments
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != int(parent):
        return  # the parent ended before the tie was established
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
