# To be sourced by Slurm batch scripts. A job that is about to reach its time limit, or to be preempted, gets a signal and
# is requeued, so that it can continue later.

# Runs a program, signals it once when the batch script gets a signal, and requeues the job if the program exits with
# code 75, which means that it was interrupted and can continue. A run on several hosts is also requeued if a signal ended
# one of its tasks, for instance because a host died, but only a few times, as a task may be killed every time.
max_restarts=5
run_or_requeue() {
  local code=0 again=1 told=0
  "$@" &
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
  if [ "$code" = 75 ] || { [ "$told" = 1 ] && [ "$code" = "$((128 + $(kill -l USR1)))" ]; } ||
    { [ "$code" -gt 128 ] && [ "${SLURM_NTASKS:-1}" -gt 1 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "$max_restarts" ]; }; then
    echo "interrupted: job $SLURM_JOB_ID goes back into the queue"
    scontrol requeue "$SLURM_JOB_ID"
  fi
  return "$code"
}
