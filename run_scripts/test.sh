#!/usr/bin/env bash
# Creates the environment, checks style and types, and runs the tests on all cores. Further arguments, such as -m slow, go
# to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
EXTRAS=test source run_scripts/environment.sh

.venv/bin/ruff check .
.venv/bin/ruff format --check .
# The types beside the tests: mypy uses one core alone for half a minute where it has no cache.
types="$(mktemp)"
trap 'rm -f "$types"' EXIT
.venv/bin/mypy >"$types" 2>&1 &
mypy=$!
tests=0
.venv/bin/python -m pytest -n auto --dist loadfile "$@" || tests=$?
wait "$mypy" || { cat "$types" >&2; exit 1; }
exit "$tests"
