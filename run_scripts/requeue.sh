# For batch scripts of Slurm; to be sourced. A job that is about to reach its time limit, or to be preempted, gets a
# signal and is put into the queue again, where it goes on.

# Runs a program, passes the batch script's signals on to it, and puts the job into the queue again if it says, by exit
# code 75, that it was interrupted and can go on.
run_or_requeue() {
  local code=0 again=1
  "$@" &
  program=$!
  trap 'again=1; kill -USR1 "$program" 2>/dev/null || true' USR1
  trap 'again=1; kill -TERM "$program" 2>/dev/null || true' TERM
  # A signal ends the shell's wait, not the program.
  while [ "$again" = 1 ]; do
    again=0
    code=0
    wait "$program" || code=$?
  done
  trap - USR1 TERM
  if [ "$code" = 75 ]; then
    echo "interrupted: job $SLURM_JOB_ID goes back into the queue"
    scontrol requeue "$SLURM_JOB_ID"
  fi
  return "$code"
}
