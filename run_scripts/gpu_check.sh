#!/usr/bin/env bash
# Checks this machine's GPU: single steps against the oracle on one warp and on two, laws of localized runs, equal bits
# whatever the calls and the other chains, levels against the CPU engine, memory and races where compute-sanitizer is
# installed, and rates of the engines and, with a checkout of DISCS on PYTHONPATH, of DISCS. Takes some minutes; prints what
# it finds and saves the rates, which docs/tables.py reads. For example:
#   bash run_scripts/gpu_check.sh --save=results/a40.json
# --no-install: uses the active Python environment (PYTHON, default python3) unchanged instead of creating .venv.
# --only=WORD: of the tests, only those with this word in their names, such as gibbs. Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

installs=1
save=results/gpu_check.json
tests="(on_a_card or cuda-)"
arguments=()
for argument in "$@"; do
  case "$argument" in
    --no-install) installs=0 ;;
    --save=*) save="${argument#--save=}" ;;
    --only=*) tests="$tests and ${argument#--only=}" ;;
    *) arguments+=("$argument") ;;
  esac
done
driver="$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true)"
major="${driver%%.*}"
if ! [[ "$major" =~ ^[0-9]+$ ]]; then
  echo "error: no GPU: nvidia-smi finds none; run this on a machine with an NVIDIA GPU" >&2
  exit 2
elif [ "$major" -ge 580 ]; then
  cuda=cuda13
elif [ "$major" -ge 525 ]; then
  cuda=cuda12
else
  echo "error: NVIDIA driver $driver is too old for JAX; install driver 525 or newer" >&2
  exit 2
fi
python="${PYTHON:-python3}"
if [ "$installs" = 1 ]; then
  EXTRAS="test,$cuda" source run_scripts/environment.sh
  python=.venv/bin/python
fi
mkdir -p "$(dirname "$save")"
# The engine `cuda` needs no device of JAX's.
export JAX_PLATFORMS=cpu PYTHONUNBUFFERED=1 PYTHONPATH="$PWD:${PYTHONPATH:-}"
# Kernels are compiled in one process each, and kept for the next process.
processes="$(nproc)"
[ "$processes" -le 8 ] || processes=8

failed=()
check() {
  local name="$1" rc=0
  shift
  echo "== $name"
  "$@" || rc=$?
  [ "$rc" = 0 ] || failed+=("$name")
}
check "the card" nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
check "numba-cuda" "$python" -c "import numba_cuda, jax, numpy as np; print('numba-cuda', numba_cuda.__version__, \
'JAX', jax.__version__, 'NumPy', np.__version__)"
check "oracle, laws, bits and levels on the card" timeout 300 "$python" -m pytest -q --tb=short --durations=3 -n "$processes" \
  -m "slow or not slow" -p no:cacheprovider \
  tests/engines tests/testing/test_single_steps.py tests/localization/test_localized_law.py \
  -k "$tests" ${arguments[@]+"${arguments[@]}"}
rates() {
  local output="$1" platforms="$2"
  shift 2
  timeout 300 env JAX_PLATFORMS="$platforms" "$python" benchmarks/rates.py \
    --graphs=32 --chains=32 --repeats=1 --cases=mis-er-0.05,maxcut-ba-512 --output="$output" "$@"
}
samplers=gwg,path_auxiliary,dmala,sl_gwg,sl_path_auxiliary
compile_kernels() {
  local parts
  parts="$(mktemp -d)"
  export -f rates
  export python
  tr , '\n' <<<"$samplers" | xargs -P "$processes" -I SAMPLER bash -c \
    "rates '$parts/SAMPLER.json' cpu --engines=cuda --steps=100 --samplers=SAMPLER >'$parts/SAMPLER.log' 2>&1" ||
    { cat "$parts"/*.log && return 1; }
  rm -r "$parts"
}
check "compiling kernels" compile_kernels
check "rates of cuda" rates "$save" cpu --engines=cuda --steps=10000 --samplers="$samplers"
peers=reference
if "$python" -c "import discs" 2>/dev/null; then peers=reference,discs; fi
check "rates of $peers on the same card" rates "$save.peers" cuda,cpu --engines="$peers" --steps=400 \
  --samplers=gwg,path_auxiliary,dmala,sl_path_auxiliary
[ ! -f "$save.peers" ] || check "one file" "$python" - "$save" <<'PYTHON'
import json
import pathlib
import sys

ours, peers = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[1] + ".peers")
more = json.loads(peers.read_text())
found = json.loads(ours.read_text()) if ours.exists() else {"settings": {}, "cases": {}}
for case, samplers in more["cases"].items():
    for sampler, engines in samplers.items():
        found["cases"].setdefault(case, {}).setdefault(sampler, {}).update(engines)
found["settings"] |= {"machine": more["settings"]["machine"], "steps_of_peers": more["settings"]["steps"]}
ours.write_text(json.dumps(found, indent=1) + "\n")
peers.unlink()
PYTHON
sanitizer="$(PATH="$PATH:/usr/local/cuda/bin" command -v compute-sanitizer || true)"
if [ -n "$sanitizer" ]; then
  # Once without it, which compiles: under it that would take minutes.
  check "a short run" timeout 200 "$python" tests/engines/short_cuda_run.py
  for tool in memcheck racecheck; do
    check "compute-sanitizer $tool" timeout 120 "$sanitizer" --tool "$tool" --error-exitcode 9 \
      "$python" tests/engines/short_cuda_run.py
  done
else
  echo "== compute-sanitizer is not installed: left out"
fi
if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}"
  exit 1
fi
echo "passed; rates are in $save"
