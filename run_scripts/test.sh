#!/usr/bin/env bash
# Creates the environment, checks style, types and prose, and runs the tests on all cores. Further arguments, such as
# -m slow, go to pytest.
# Tests of studies and benchmarks are run where a file there differs from the commit at which the branch left main (on main
# itself, from the commit before), where that commit is not known, as in a clone without history, and with -m slow.
# --discs=FOLDER: a checkout of google-research/discs, without which the tests of the plugin are skipped. For example:
#   bash run_scripts/test.sh --discs=../discs tests/discs_plugin
set -euo pipefail
extras=test
# The compiler of GPU kernels, which tests interpret: 10 seconds and 520 MB.
[ "$(uname -s)" != Linux ] || extras=test,kernels
arguments=()
paths=""
slow=""
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
    *)
      arguments+=("$argument")
      case "$argument" in slow | published) slow=1 ;; esac
      [ ! -e "${argument%%::*}" ] || paths=1
      ;;
  esac
done
cd "$(dirname "$0")/.."
EXTRAS="$extras" source run_scripts/environment.sh

# Whether a file of studies or benchmarks, or one that only their tests use, has changed, or nobody knows.
beside_changed() {
  local base left
  base="$(git rev-parse --verify --quiet "${SL_DISCS_BASE:-origin/main}" || git rev-parse --verify --quiet main)" || return 0
  left="$(git merge-base HEAD "$base" 2>/dev/null)" || return 0
  if [ "$left" = "$(git rev-parse HEAD)" ]; then
    left="$(git rev-parse --verify --quiet HEAD^)" || return 0
  fi
  ! git diff --quiet "$left" -- studies benchmarks docs/tables.py
}
if [ -z "$paths" ]; then
  arguments+=(tests)
  if [ -n "$slow" ] || beside_changed; then
    arguments+=(studies/tests benchmarks/tests)
  else
    echo "left out: the tests of studies and benchmarks, whose files have not changed"
  fi
fi

# Workers share the cores: threads of BLAS, which turn while they wait, would take them from other tests.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/python docs/check.py
# The types beside the tests: mypy uses one core alone for half a minute where it has no cache.
types="$(mktemp)"
trap 'rm -f "$types"' EXIT
.venv/bin/mypy >"$types" 2>&1 &
mypy=$!
tests=0
.venv/bin/python -m pytest -n auto --dist loadfile ${arguments[@]+"${arguments[@]}"} || tests=$?
wait "$mypy" || { cat "$types" >&2; exit 1; }
exit "$tests"
