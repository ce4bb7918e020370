#!/usr/bin/env bash
# From a fresh clone to a comparison: path auxiliary sampling with and without stochastic localization on eight
# maximum-independent-set instances (Erdos-Renyi, density 0.10), 32 chains of 10,000 steps each.
# Further arguments are passed on, such as --config.experiment.num_instances=32.
set -euo pipefail
cd "$(dirname "$0")/.."
EXTRAS=run source run_scripts/environment.sh

exec .venv/bin/python -m sl_discs run \
  --config=configs/experiment/mis/er_density.py \
  --config.experiment.num_instances=8 \
  --model_config=configs/model/mis_config.py \
  --model_config.graph_type=er_density \
  --model_config.cfg_str=r-0.10 \
  --samplers=path_auxiliary,sl_path_auxiliary \
  "$@"
