"""Marks of parameters."""

import functools
import os
import subprocess
from pathlib import Path

import pytest


def slow_except(names, fast):
    """All names, those that are not among the fast ones marked as slow."""
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in names]


@functools.cache
def changed_files():
    """The files that differ from where this branch left the base: the commit or branch that
    SL_DISCS_BASE names, `origin/main` or `main`; none where that is not known.
    """

    def git(*arguments):
        command = ["git", *arguments]
        done = subprocess.run(
            command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True
        )
        return done.stdout.split()

    for base in filter(None, (os.environ.get("SL_DISCS_BASE"), "origin/main", "main")):
        try:
            return git("diff", "--name-only", *git("merge-base", "HEAD", base))
        except (OSError, subprocess.CalledProcessError):
            continue
    return []


def slow_unless_changed(*paths):
    """Marks of tests that run by default only if files below one of these paths changed."""
    return [] if any(name.startswith(paths) for name in changed_files()) else [pytest.mark.slow]
