#!/usr/bin/env bash
# Makes thirty faults, one at a time, in copies of the checkout, and runs the tests that should
# notice them; for the days before a release. Each takes 3 to 20 CPU seconds, and more where nothing
# is compiled yet.
#
#   bash run_scripts/mutations.sh            all of them
#   bash run_scripts/mutations.sh 13 14      only these
set -euo pipefail
cd "$(dirname "$0")/.."
EXTRAS=test,kernels source run_scripts/environment.sh
.venv/bin/python tests/mutations.py "$@"
