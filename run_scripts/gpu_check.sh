#!/usr/bin/env bash
# Checks the reference engine on this machine's GPU: its rates, single steps of every sampler against the oracle, and the
# laws of samplers and of localized runs. Prints what was found and saves it to results/gpu_check.txt. For example:
#   bash run_scripts/gpu_check.sh --save=results/a40.txt
# --no-install: uses the active Python environment (PYTHON, default python3) unchanged instead of creating .venv.
# --allow-cpu: runs on whatever device there is, to try the script.
# Further arguments go to pytest, such as -k gibbs for the checks of one sampler.
set -euo pipefail
cd "$(dirname "$0")/.."

installs=1
allow_cpu=0
save=results/gpu_check.txt
arguments=()
for argument in "$@"; do
  case "$argument" in
    --no-install) installs=0 ;;
    --allow-cpu) allow_cpu=1 ;;
    --save=*) save="${argument#--save=}" ;;
    *) arguments+=("$argument") ;;
  esac
done
cuda=""
driver="$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 || true)"
major="${driver%%.*}"
if ! [[ "$major" =~ ^[0-9]+$ ]]; then
  if [ "$allow_cpu" = 0 ]; then
    echo "error: no GPU: nvidia-smi finds none; run this on a machine with an NVIDIA GPU, or try it with --allow-cpu" >&2
    exit 2
  fi
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
  EXTRAS=test source run_scripts/environment.sh
  python=.venv/bin/python
  # Needs no network if it is already installed.
  [ -z "$cuda" ] || "$python" -m pip install --quiet --disable-pip-version-check "jax[$cuda]"
fi

mkdir -p "$(dirname "$save")"
failed=()
check() {
  local name="$1" rc=0
  shift
  echo "== $name" | tee -a "$save"
  "$@" 2>&1 | tee -a "$save" || rc=$?
  [ "$rc" = 0 ] || failed+=("$name")
}
tests() {
  local name="$1"
  shift
  check "$name" "$python" -m pytest -q --tb=short -m "slow or not slow" "$@" ${arguments[@]+"${arguments[@]}"}
}

steps=tests/testing/test_single_steps.py
: >"$save"
ALLOW_CPU="$allow_cpu" check "device and rates" "$python" - <<'PYTHON'
import os
import sys

import jax
import networkx as nx

import sl_discs

device = jax.devices()[0]
print(f"{device.device_kind}, {len(jax.devices())} device(s), JAX {jax.__version__}, sl_discs {sl_discs.__version__}")
if device.platform != "gpu":
    if os.environ["ALLOW_CPU"] == "0":
        sys.exit("no GPU: JAX runs on CPUs; install jax[cuda13] or jax[cuda12], or try the script with --allow-cpu")
    print("NOT A GPU: this only shows that the script works")
graphs = {
    "mis, 500 nodes, density 0.1": sl_discs.mis(nx.gnp_random_graph(500, 0.1, seed=0)),
    "maxcut, 2,000 nodes, degree 4": sl_discs.maxcut(nx.barabasi_albert_graph(2_000, 4, seed=0)),
}
chains, steps = (1024, 1_000) if device.platform == "gpu" else (4, 20)
print(f"thousands of chain-steps per second, {chains} chains of {steps} steps")
for sampler in ("gwg", "path_auxiliary", "dmala", "gibbs", "sl_gwg", "sl_path_auxiliary", "sl_dmala"):
    rates = []
    for problem in graphs.values():
        found = sl_discs.solve(problem, sampler, steps=steps, chains=chains, engine="reference")
        rates.append(f"{chains * found.steps / found.timing['run_s'] / 1e3:10.1f}")
    print(f"{sampler:<20}", *rates)
print(f"{'':<20}", *(f"({name})" for name in graphs))
PYTHON
if [ ${#failed[@]} = 0 ]; then
  tests "single steps against the oracle" "$steps"::test_reference{,_with_other_weights} \
    "$steps"::test_reference_on_three_sites_sparse_and_not_localized
  tests "laws of samplers" tests/samplers/test_laws.py::test_whole_conformance_suite
  tests "laws of localized runs" tests/localization/test_localized_law.py::test_each_engine_gives_the_law
fi
if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}" | tee -a "$save"
  exit 1
fi
echo "passed" | tee -a "$save"
