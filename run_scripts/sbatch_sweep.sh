#!/usr/bin/env bash
# A sweep as a Slurm job array with one task per run, for example:
#   slurm="--partition=gpu --gres=gpu:1 --time=4:00:00" bash run_scripts/sbatch_sweep.sh \
#     --sweep=configs/sweep/seeds_and_samplers.py --save_root=results/my_sweep
# Arguments are those of `sl-discs sweep`, which also shows the state of the sweep (status) and collects a table
# (collect). If it is submitted again, tasks of finished runs end at once. Paths are relative to the repository's root.
# workers: number of tasks, each of which performs any remaining runs, instead of one task per run; for many short runs,
# or for more runs than an array may have tasks.
# command: `tune` for workers of one search for settings:
#   command=tune workers=8 bash run_scripts/sbatch_sweep.sh --dataset=mis/er_density/r-0.10 \
#     --sampler=sl_path_auxiliary --trials=100
# slurm: options of sbatch, as in sbatch_run.sh. Two minutes before its time limit a task saves a checkpoint of its run
# and is requeued, so that it can continue later.
#SBATCH --job-name=sl_discs_sweep
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
if [ -f "$(dirname "$0")/requeue.sh" ]; then # not in a job: there, this is a copy in a folder of Slurm's
  cd "$(dirname "$0")/.."
  EXTRAS="${EXTRAS:-run${command:+,tune}}" source run_scripts/environment.sh
  tasks="${workers:-}"
  if [ -z "$tasks" ] && [ -n "${command:-}" ]; then
    echo "error: $command has no runs to count; set workers, as in: workers=8 command=$command $0" >&2
    exit 2
  fi
  if [ -z "$tasks" ]; then
    runs="$(.venv/bin/python -m sl_discs sweep list "$@")"
    tasks="$(wc -l <<<"$runs")"
  fi
  exec sbatch ${slurm:-} --array="1-$tasks" run_scripts/sbatch_sweep.sh "$@"
fi
cd "$SLURM_SUBMIT_DIR"
EXTRAS="${EXTRAS:-run${command:+,tune}}" source run_scripts/environment.sh
source run_scripts/requeue.sh
words=("${command:-sweep}")
if [ -z "${command:-}" ]; then
  words+=(run)
  [ -n "${workers:-}" ] || words+=("--sweep_index=${SLURM_ARRAY_TASK_ID:?call this with bash, which submits an array}")
fi
run_or_requeue .venv/bin/python -m sl_discs "${words[@]}" "$@"
