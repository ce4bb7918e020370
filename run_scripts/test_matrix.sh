#!/usr/bin/env bash
# The tests on every supported Python that is installed, with the newest dependencies, and on the first of them with the
# oldest ones that pyproject.toml allows. Creates an environment for each in build/matrix. Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
root="$PWD/build/matrix"
mkdir -p "$root"

# Lower bounds of the core and of what its tests need, as exact versions; tools that check style stay as they are.
oldest() {
  "$1" - <<'PYTHON'
import re, tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for wanted in [*project["dependencies"], *(one for name in ("run", "tune", "dimod", "exact") for one in extras[name])]:
    if match := re.fullmatch(r"([\w-]+)>=([\w.]+)", wanted):
        print(f"{match[1]}=={match[2]}")
PYTHON
}

failed=()
run() {
  local name="$1" python="$2"
  shift 2
  echo "== $name"
  [ -x "$root/$name/bin/python" ] || "$python" -m venv "$root/$name"
  if [[ $name == *oldest ]]; then
    oldest "$python" >"$root/$name.txt"
    "$root/$name/bin/python" -m pip install --quiet -e ".[test]" -c "$root/$name.txt" || { failed+=("$name: install"); return; }
  else
    "$root/$name/bin/python" -m pip install --quiet --upgrade -e ".[test]" || { failed+=("$name: install"); return; }
  fi
  "$root/$name/bin/python" -m pytest -n auto --dist loadfile "$@" || failed+=("$name: tests")
}

first=""
for version in 3.11 3.12 3.13; do
  if ! command -v "python$version" >/dev/null || ! "python$version" -c "" 2>/dev/null; then
    echo "== python$version is not installed: left out"
    continue
  fi
  [ -n "$first" ] || { first="python$version"; run "$version-oldest" "$first" "$@"; }
  run "$version-newest" "python$version" "$@"
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
