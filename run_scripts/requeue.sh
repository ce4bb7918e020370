# For batch scripts of Slurm; to be sourced. A job that is about to reach its time limit, or to be preempted, gets a
# signal and is put into the queue again, where it goes on.

# Runs a program, tells it once when the batch script gets a signal, and puts the job into the queue again if the program
# says, by exit code 75, that it was interrupted and can go on. A run on several hosts also goes back when a signal ended
# one of its tasks, as when a host dies, but not for ever: a task that is killed each time would never end.
max_restarts=5
run_or_requeue() {
  local code=0 again=1 told=0
  "$@" &
  program=$!
  # SIGUSR1 for either: Slurm sends SIGTERM to a job's every process, and a second SIGTERM would end a program that saves
  # its checkpoint because of the first.
  trap 'again=1; [ "$told" = 1 ] || kill -USR1 "$program" 2>/dev/null || true; told=1' USR1 TERM
  # A signal ends the shell's wait, not the program.
  while [ "$again" = 1 ]; do
    again=0
    code=0
    wait "$program" || code=$?
  done
  trap - USR1 TERM
  # One that is told before it listens ends by the signal.
  if [ "$code" = 75 ] || { [ "$told" = 1 ] && [ "$code" = "$((128 + $(kill -l USR1)))" ]; } ||
    { [ "$code" -gt 128 ] && [ "${SLURM_NTASKS:-1}" -gt 1 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt "$max_restarts" ]; }; then
    echo "interrupted: job $SLURM_JOB_ID goes back into the queue"
    scontrol requeue "$SLURM_JOB_ID"
  fi
  return "$code"
}
