#!/usr/bin/env bash
# One run as a Slurm job, for example:
#   slurm="--partition=gpu --gres=gpu:1 --time=4:00:00" bash run_scripts/sbatch_run.sh \
#     --config=configs/experiment/mis/er_density.py --model_config=configs/model/mis_config.py \
#     --samplers=path_auxiliary,sl_path_auxiliary
# All arguments go to `sl-discs run`; paths are relative to the repository's root. The environment is created on the
# machine where this is called, since compute nodes often have no network. Sweeps: `sl-discs sweep run --executor=slurm`.
# slurm: options of sbatch. Slurm also reads SBATCH_PARTITION, SBATCH_ACCOUNT and so on.
# command: another command of sl-discs (default run). Eight workers of one search for settings are
#   command=tune slurm="--array=1-8" bash run_scripts/sbatch_run.sh --dataset=mis/er_density/r-0.10 \
#     --sampler=sl_path_auxiliary --trials=100
# parts: divides the instances of one run among so many jobs of an array (docs/clusters.md).
# Two minutes before the time limit the program gets SIGUSR1; if it exits with code 75, the job is requeued.
#SBATCH --job-name=sl_discs
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
if [ -f "$(dirname "$0")/environment.sh" ]; then # not in a job: there, this is a copy in a folder of Slurm's
  cd "$(dirname "$0")/.."
  EXTRAS="${EXTRAS:-run${command:+,tune}}" source run_scripts/environment.sh
  exec sbatch ${slurm:-} ${parts:+"--array=1-$parts"} run_scripts/sbatch_run.sh "$@"
fi
cd "$SLURM_SUBMIT_DIR"
EXTRAS="${EXTRAS:-run${command:+,tune}}" source run_scripts/environment.sh

code=0 again=1 told=0
.venv/bin/python -m sl_discs "${command:-run}" ${parts:+"--part=$SLURM_ARRAY_TASK_ID/$parts"} "$@" &
program=$!
# Always SIGUSR1: Slurm sends SIGTERM to every process of a job, and a second SIGTERM would end a program that is saving
# its checkpoint because of the first.
trap 'again=1; [ "$told" = 1 ] || kill -USR1 "$program" 2>/dev/null || true; told=1' USR1 TERM
# A signal ends the shell's wait, not the program.
while [ "$again" = 1 ]; do
  again=0
  code=0
  wait "$program" || code=$?
done
trap - USR1 TERM
# A program that gets the signal before it has installed its handler is ended by it.
if [ "$code" = 75 ] || { [ "$told" = 1 ] && [ "$code" = "$((128 + $(kill -l USR1)))" ]; }; then
  echo "interrupted: job $SLURM_JOB_ID goes back into the queue"
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
