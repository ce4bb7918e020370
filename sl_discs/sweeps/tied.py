"""Program: becomes another program that is killed when the process that started it ends, however that ends.

python -m sl_discs.sweeps.tied PARENT COMMAND...

A worker that is killed outright cannot stop its run; without this, the run would go on beside that of the worker
which takes it over. Linux alone can do it; elsewhere the run goes on.
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
        return  # it ended before the tie held
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
