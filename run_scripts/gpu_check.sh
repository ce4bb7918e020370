#!/usr/bin/env bash
# Checks whether the engine `gpu` is correct and faster than the reference on this machine's GPU. Takes less than ten
# minutes plus downloads, and writes its report to results/gpu_check. For example:
#   bash run_scripts/gpu_check.sh --save_root=results/gpu_check
# --no-install: uses the active Python environment unchanged instead of creating .venv.
# --cpu: tries the script without a GPU: the kernel is interpreted, and there is no verdict.
# Further arguments go to `sl-discs bench gpu`.
set -euo pipefail
cd "$(dirname "$0")/.."

installs=1
cpu=0
arguments=()
for argument in "$@"; do
  case "$argument" in
    --no-install) installs=0 ;;
    --cpu) cpu=1 arguments+=(--cpu) ;;
    *) arguments+=("$argument") ;;
  esac
done
cuda=""
if [ "$cpu" = 0 ]; then
  driver="$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true)"
  major="${driver%%.*}"
  if ! [[ "$major" =~ ^[0-9]+$ ]]; then
    echo "error: no GPU: nvidia-smi finds none; call this on a machine with an NVIDIA GPU, or try it by --cpu" >&2
    exit 2
  elif [ "$major" -ge 580 ]; then
    cuda=cuda13
  elif [ "$major" -ge 525 ]; then
    cuda=cuda12
  else
    echo "error: NVIDIA driver $driver is too old for JAX; install driver 525 or newer" >&2
    exit 2
  fi
fi
python="${PYTHON:-python3}"
if [ "$installs" = 1 ]; then
  EXTRAS=run source run_scripts/environment.sh
  python=.venv/bin/python
  # Needs no network if it is already installed.
  [ -z "$cuda" ] || "$python" -m pip install --quiet --disable-pip-version-check "jax[$cuda]"
fi
exec "$python" -m sl_discs bench gpu ${arguments[@]+"${arguments[@]}"}
