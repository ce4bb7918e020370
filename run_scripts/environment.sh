# Creates .venv and installs the package into it; source it from the repository's root.
# Does nothing, and needs no network, if the environment already matches pyproject.toml.
# PYTHON selects the interpreter (3.11 or newer), EXTRAS the optional dependencies.

PYTHON="${PYTHON:-python3}"
EXTRAS="${EXTRAS:-run}"

if ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "error: $PYTHON is missing or older than Python 3.11; set PYTHON to a newer one" >&2
  exit 2
fi
wanted="$(cksum <pyproject.toml)"
if [ "$(cat ".venv/installed-$EXTRAS" 2>/dev/null)" != "$wanted" ]; then
  echo "installing sl_discs[$EXTRAS] into .venv (once; about 1 GB on disk)"
  [ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".[$EXTRAS]"
  # Both of the others contain what a run needs.
  echo "$wanted" | tee ".venv/installed-$EXTRAS" >.venv/installed-run
fi
