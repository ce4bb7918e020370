"""Programs that tests start: each has a limit, and imports the package of this checkout."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def call(*words, cwd=ROOT, path=(), **variables):
    """Runs a program to its end, with folders that come first on Python's path."""
    places = [*map(str, path), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(filter(None, places))}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=os.environ | environment | variables,
        capture_output=True,
        text=True,
        timeout=1200,
    )


def python(*words, **options):
    """Runs Python to its end, which must succeed; what it printed."""
    done = call(sys.executable, *words, **options)
    assert done.returncode == 0, done.stderr
    return done


def sl_discs(*words, **options):
    """Runs `sl-discs` to its end."""
    return call(sys.executable, "-m", "sl_discs", *words, **options)
