#!/usr/bin/env bash
# Creates the environment, checks style and types, and runs the tests on all cores. Further arguments, such as -m slow, go
# to pytest.
# --discs=FOLDER: a checkout of google-research/discs, without which the tests of the plugin are skipped. For example:
#   bash run_scripts/test.sh --discs=../discs tests/discs_plugin
set -euo pipefail
extras=test
# The compiler of GPU kernels, which tests interpret: 10 seconds and 520 MB.
[ "$(uname -s)" != Linux ] || extras=test,kernels
arguments=()
for argument in "$@"; do
  case "$argument" in
    --discs=*)
      discs="$(cd "${argument#--discs=}" 2>/dev/null && pwd)" || discs=""
      if [ ! -f "$discs/discs/samplers/abstractsampler.py" ]; then
        echo "error: $argument: no checkout of google-research/discs is there (discs/samplers); clone it, and give its folder" >&2
        exit 2
      fi
      export PYTHONPATH="$discs${PYTHONPATH:+:$PYTHONPATH}"
      extras="$extras,discs"
      ;;
    *) arguments+=("$argument") ;;
  esac
done
cd "$(dirname "$0")/.."
EXTRAS="$extras" source run_scripts/environment.sh

.venv/bin/ruff check .
.venv/bin/ruff format --check .
# The types beside the tests: mypy uses one core alone for half a minute where it has no cache.
types="$(mktemp)"
trap 'rm -f "$types"' EXIT
.venv/bin/mypy >"$types" 2>&1 &
mypy=$!
tests=0
.venv/bin/python -m pytest -n auto --dist loadfile ${arguments[@]+"${arguments[@]}"} || tests=$?
wait "$mypy" || { cat "$types" >&2; exit 1; }
exit "$tests"
