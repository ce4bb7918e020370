#!/usr/bin/env bash
# Makes the environment, checks the style and the types and runs the tests, on every core. Further arguments go to pytest, such as -m slow.
set -euo pipefail
cd "$(dirname "$0")/.."
EXTRAS=test source run_scripts/environment.sh

.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy
exec .venv/bin/python -m pytest -n auto --dist loadfile "$@"
