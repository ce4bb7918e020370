#!/usr/bin/env bash
# DISCS's own experiment with a sampler of DISCS or of sl_discs, from a checkout of DISCS, for example:
#   discs=~/discs model=ising sampler=sl_path_auxiliary bash run_scripts/run_discs_local.sh
#   discs=~/discs model=mis graph_type=er_density sampler=sl_gwg bash run_scripts/run_discs_local.sh \
#     --model_config.cfg_str=r-0.10 --model_config.data_root=./sco
# discs: folder of the checkout (default: the working directory). model, sampler: as in DISCS. graph_type: for
# combinatorial models. devices: number of CPU devices to emulate (default 1). Further arguments are passed on.
set -euo pipefail
if [ -z "${model:-}" ] || [ -z "${sampler:-}" ]; then
  echo "error: set model and sampler, as in: model=ising sampler=sl_path_auxiliary $0" >&2
  exit 2
fi
started_in="$PWD"
cd "$(dirname "$0")/.."
EXTRAS=discs source run_scripts/environment.sh
python="$PWD/.venv/bin/python"
cd "$started_in"

experiment="discs/common/configs.py"
graph=()
if [ -n "${graph_type:-}" ]; then
  experiment="discs/experiment/configs/$model/$graph_type.py"
  graph=("--model_config.graph_type=$graph_type")
fi
if [ "${devices:-1}" -gt 1 ]; then
  export XLA_FLAGS="--xla_force_host_platform_device_count=$devices ${XLA_FLAGS:-}"
fi
export PYTHONPATH="${discs:-$started_in}${PYTHONPATH:+:$PYTHONPATH}"
exec "$python" -m sl_discs discs main \
  --config="$experiment" \
  --model_config="discs/models/configs/${model}_config.py" \
  ${graph[@]+"${graph[@]}"} \
  --sampler_config="discs/samplers/configs/${sampler}_config.py" \
  --run_local \
  "$@"
