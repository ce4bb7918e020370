#!/usr/bin/env bash
# One run as a Slurm job, for example:
#   slurm="--partition=gpu --gres=gpu:1 --time=4:00:00" bash run_scripts/sbatch_run.sh \
#     --config=configs/experiment/mis/er_density.py --model_config=configs/model/mis_config.py \
#     --samplers=path_auxiliary,sl_path_auxiliary
# All arguments go to `sl-discs run`; paths are relative to the repository's root. The environment is created on the
# machine where this is called, since compute nodes often have no network. Sweeps: `sl-discs sweep run --executor=slurm`.
# slurm: options of sbatch. Slurm also reads SBATCH_PARTITION, SBATCH_ACCOUNT and so on.
# script: a script of the checkout in place of `sl-discs run`. Eight workers of one search for settings are
#   script=studies/tuning/main.py slurm="--array=1-8" bash run_scripts/sbatch_run.sh --dataset=mis/er_density/r-0.10 \
#     --sampler=sl_path_auxiliary --trials=100
# parts: divides the instances of one run among so many jobs of an array (docs/clusters.md).
# Two minutes before the time limit the program gets SIGUSR1; if it exits with code 75, the job is requeued, up to 100
# times. After SIGTERM it is not, as the job may have been cancelled: Slurm itself requeues one that was preempted.
#SBATCH --job-name=sl_discs
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=results/slurm/%x-%j.out
set -euo pipefail
if [ -f "$(dirname "$0")/environment.sh" ]; then # not in a job: there, this is a copy in a folder of Slurm's
  if ! command -v sbatch >/dev/null; then
    echo "error: there is no sbatch here; without Slurm, start sl-discs run ... --part=1/N to N/N (docs/clusters.md)" >&2
    exit 2
  fi
  cd "$(dirname "$0")/.."
  EXTRAS="${EXTRAS:-run${script:+,tune}}"
  source run_scripts/environment.sh
  mkdir -p results/slurm # Slurm makes no folders
  # As arguments: the job may not have this environment, as with --export=NONE.
  set -- "$EXTRAS" "$PYTHON" "${script:--m sl_discs run}" "${parts:-}" "$@"
  array="${parts:+--array=1-$parts --output=results/slurm/%x-%A_%a.out}"
  exec sbatch $array ${slurm:-} run_scripts/sbatch_run.sh "$@"
fi
EXTRAS="$1" PYTHON="$2" program="$3" parts="$4"
shift 4
cd "$SLURM_SUBMIT_DIR"
source run_scripts/environment.sh

.venv/bin/python $program ${parts:+"--part=$SLURM_ARRAY_TASK_ID/$parts"} "$@" &
program=$! told='' again=1
# Always SIGUSR1: Slurm sends SIGTERM to every process of a job, and a second SIGTERM would end a program that is saving
# its checkpoint because of the first.
tell() {
  [ -n "$told" ] || kill -USR1 "$program" 2>/dev/null || true
  told="${told:-$1}" again=1
}
trap 'tell limit' USR1
trap 'tell end' TERM
# A signal ends the shell's wait, not the program.
while [ "$again" = 1 ]; do
  again=0 code=0
  wait "$program" || code=$?
done
case "$told $code" in # 138, 143: ended by a signal, before it listened
  " 75" | "limit 75" | "limit 138")
    if [ "${SLURM_RESTART_COUNT:-0}" -lt 100 ]; then
      # The number of one of the jobs of an array is that of the array, for which it would stand.
      job="${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}${SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}"
      echo "interrupted: job $job goes back into the queue"
      scontrol requeue "$job"
    fi ;;
  "end 75" | "end 138" | "end 143")
    echo "interrupted: waits until Slurm requeues the job, if it was preempted, or ends it, if it was cancelled"
    sleep 1800 & # not for ever, if nobody ends it
    wait ;;
esac
exit "$code"
