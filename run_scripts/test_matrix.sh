#!/usr/bin/env bash
# The tests on every supported Python that is installed, with the newest dependencies, and on the first of them with the
# oldest ones that pyproject.toml allows. Makes an environment for each in build/matrix. Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD/build/matrix"
mkdir -p "$root"

failed=()
run() {
  local name="$1" python="$2" resolution="$3" here="$root/$1/bin/python"
  shift 3
  echo "== $name"
  [ -x "$here" ] || "$python" -m venv "$root/$name"
  if "$here" -m pip install --quiet --upgrade uv &&
    "$here" -m uv pip install --quiet --python "$here" --upgrade --resolution "$resolution" -e ".[test]"; then
    "$here" -m pytest -n auto --dist loadfile "$@" || failed+=("$name: tests")
  else
    failed+=("$name: install")
  fi
}

first=""
for version in 3.11 3.12 3.13; do
  if ! command -v "python$version" >/dev/null || ! "python$version" -c "" 2>/dev/null; then
    echo "== python$version is not installed: left out"
    continue
  fi
  [ -n "$first" ] || { first="python$version"; run "$version-oldest" "$first" lowest-direct "$@"; }
  run "$version-newest" "python$version" highest "$@"
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
