#!/usr/bin/env bash
# Tunes the paper's methods on its datasets, on training graphs, one after the other, for the protocol `held out`:
#   bash run_scripts/tune_all.sh --trials=16 --data_root=FOLDER
# --trials: trials of each search (default 16). --datasets, --methods: comma-separated selections. Other arguments, such
# as --train_instances=4 or --chain_length=2000, go to `studies/tuning/main.py`.
# Settings are written to configs/sampler/tuned/<dataset>/<method>.json. Settings from as many trials are left unchanged,
# and a search that was stopped continues from its journal in results/tuning. A localized method starts from the settings
# of its base, which is therefore tuned first. Random sets, including optsicom's grids, are trained on other draws of the
# family; SATLIB and twitter, which are not random and need --data_root, on their last graphs.
# Uses the active virtual environment, or else creates .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

trials=16
datasets="mis/er_density/r-0.05,mis/er_density/r-0.10,mis/er_density/r-0.20,mis/er_density/r-0.25,mis/satlib"
datasets+=",maxclique/rb,maxclique/twitter"
for sizes in 256-300 512-600 1024-1100; do
  datasets+=",maxcut/er/r-er-0.15-n-$sizes,maxcut/ba/r-ba-4-n-$sizes"
done
datasets+=",maxcut/optsicom/r-b"
methods="path_auxiliary,sl_path_auxiliary,gwg,sl_gwg,dmala,sl_dmala"
output="configs/sampler/tuned"
more=()
for argument in "$@"; do
  case "$argument" in
    --trials=*) trials="${argument#*=}" ;;
    --datasets=*) datasets="${argument#*=}" ;;
    --methods=*) methods="${argument#*=}" ;;
    --output=*) output="${argument#*=}" ;;
    *) more+=("$argument") ;;
  esac
done
if ! [[ "$trials" =~ ^[1-9][0-9]*$ ]]; then
  echo "error: --trials=$trials is no number of trials; give --trials=16" >&2
  exit 2
fi
python=python
if [ -z "${VIRTUAL_ENV:-}" ]; then
  EXTRAS=run,tune source run_scripts/environment.sh
  python=.venv/bin/python
fi

failed=()
for dataset in ${datasets//,/ }; do
  test=32
  [ "$dataset" = maxcut/optsicom/r-b ] && test=10
  for method in ${methods//,/ }; do
    saved="$output/$dataset/$method.json"
    had="$(sed -n 's/^  "trials": \([0-9]*\),$/\1/p' "$saved" 2>/dev/null || true)"
    if [ "${had:-0}" -ge "$trials" ]; then
      echo "$dataset $method: there already, of $had trials"
      continue
    fi
    base="$output/$dataset/${method#sl_}.json"
    start=()
    [ "$method" != "${method#sl_}" ] && [ -f "$base" ] && start=("--start=$base")
    echo "$dataset $method"
    "$python" studies/tuning/main.py --dataset="$dataset" --sampler="$method" --trials="$trials" \
      --storage="results/tuning/$dataset/$method.journal" --output="$output" --test_instances="$test" \
      ${start[@]+"${start[@]}"} ${more[@]+"${more[@]}"} || failed+=("$dataset $method")
  done
done
if [ "${#failed[@]}" -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
