#!/usr/bin/env bash
# A sweep as a job array of Slurm, one task a run, for example:
#   slurm="--partition=gpu --gres=gpu:1 --time=4:00:00" bash run_scripts/sbatch_sweep.sh \
#     --sweep=configs/sweep/seeds_and_samplers.py --save_root=results/my_sweep
# Arguments are those of `sl-discs sweep`, which also shows how it stands (status) and collects a table
# (collect). Submitted again, tasks of runs that are done end at once. Paths are relative to the repository's root.
# workers: start so many tasks, each of which does any runs that are left, instead of one task a run; for many short
# runs, and for more of them than an array may have.
# command: tune for workers of one search for settings:
#   command=tune workers=8 bash run_scripts/sbatch_sweep.sh --dataset=mis/er_density/r-0.10 \
#     --sampler=sl_path_auxiliary --trials=100
# slurm: options of sbatch, as in sbatch_run.sh. Two minutes before its time limit a task saves a checkpoint of its run
# and is put into the queue again, where it goes on.
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
