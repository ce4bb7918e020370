#!/usr/bin/env bash
# Builds the sdist and the wheel into dist/, and tries both: the wheel made from the sdist is installed into an empty
# environment for each Python, where commands and a few lines of Python run outside the repository.
# PYTHONS selects the interpreters; those that are not there are left out, with a message.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHONS="${PYTHONS:-python3.11 python3.12 python3.13}"

place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
rm -rf dist
tried=0
for python in $PYTHONS; do
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "$python: not there, or older than Python 3.11; left out"
    continue
  fi
  if [ ! -d dist ]; then
    "$python" -m venv "$place/builder"
    "$place/builder/bin/pip" install --quiet --disable-pip-version-check build twine
    "$place/builder/bin/python" -m build --outdir dist .  # the wheel comes from the sdist
    "$place/builder/bin/twine" check --strict dist/*
    if tar -tzf dist/*.tar.gz | grep /tests/; then
      echo "error: the sdist has some of the tests, without what they share" >&2
      exit 1
    fi
  fi
  echo "== $("$python" --version)"
  here="$place/environment-$tried"
  "$python" -m venv "$here"
  "$here/bin/pip" install --quiet --disable-pip-version-check dist/*.whl
  (
    cd "$place"
    "$here/bin/sl-discs" --version
    "$here/bin/python" - <<'PYTHON'
import networkx as nx
import sl_discs

graph = nx.random_geometric_graph(60, 0.22, seed=4)
problem = sl_discs.maxcut(graph)
result = sl_discs.solve(problem, seed=0)
samples = sl_discs.sample(problem, method="tempering", seed=0)
assert result.optimal and result.best_value == 139 and samples.reliable, (result, samples)
assert len(nx.approximation.max_clique(graph, backend="sl_discs")) > 3
print(result, samples, sep="\n")
PYTHON
  )
  tried=$((tried + 1))
done
[ "$tried" -gt 0 ] || { echo "error: no Python of PYTHONS=\"$PYTHONS\" is there" >&2; exit 2; }
echo "built and tried on $tried Pythons:"
ls -l dist
