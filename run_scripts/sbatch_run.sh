#!/usr/bin/env bash
# One run as a Slurm job, for example:
#   slurm="--partition=gpu --gres=gpu:1 --time=4:00:00" bash run_scripts/sbatch_run.sh \
#     --config=configs/experiment/mis/er_density.py --model_config=configs/model/mis_config.py \
#     --samplers=path_auxiliary,sl_path_auxiliary
# All arguments go to `sl-discs run`; paths are relative to the repository's root. The environment is created on the
# machine where this is called, since compute nodes often have no network.
# slurm: options of sbatch. Slurm also reads SBATCH_PARTITION, SBATCH_ACCOUNT and so on.
# command: another command of sl-discs (default run). One more worker of a search for settings is
#   command=tune bash run_scripts/sbatch_run.sh --dataset=mis/er_density/r-0.10 \
#     --sampler=sl_path_auxiliary --trials=100
# With several tasks (--nodes, --ntasks-per-node) each is a host of one run (docs/clusters.md).
# Two minutes before the time limit the program gets SIGUSR1; if it exits with code 75, the job is requeued.
#SBATCH --job-name=sl_discs
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -euo pipefail
if [ -f "$(dirname "$0")/requeue.sh" ]; then # not in a job: there, this is a copy in a folder of Slurm's
  cd "$(dirname "$0")/.."
  EXTRAS="${EXTRAS:-run${command:+,tune}}" source run_scripts/environment.sh
  exec sbatch ${slurm:-} run_scripts/sbatch_run.sh "$@"
fi
cd "$SLURM_SUBMIT_DIR"
EXTRAS="${EXTRAS:-run${command:+,tune}}" source run_scripts/environment.sh
source run_scripts/requeue.sh
step=()
[ "${SLURM_NTASKS:-1}" -le 1 ] || step=(srun --kill-on-bad-exit=1)
run_or_requeue "${step[@]}" .venv/bin/python -m sl_discs "${command:-run}" "$@"
