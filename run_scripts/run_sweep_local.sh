#!/usr/bin/env bash
# Workers of a sweep on this machine, for example:
#   workers=2 bash run_scripts/run_sweep_local.sh --sweep=configs/sweep/seeds_and_samplers.py
# Arguments are those of `sl-discs sweep`. When the workers are done, it shows the state of the sweep and collects its
# table. Called again, it continues where it stopped. Paths are relative to the repository's root.
# workers: number of workers (default 2). They get equal parts of this machine's cores, so that a run that was
# interrupted on one part can continue on another.
# command: `tune` for workers of one search for settings:
#   command=tune bash run_scripts/run_sweep_local.sh --dataset=mis/er_density/r-0.10 \
#     --sampler=sl_path_auxiliary --trials=100
# Exit code: the largest of the workers'; 75 if it was interrupted.
set -euo pipefail
cd "$(dirname "$0")/.."
EXTRAS="${EXTRAS:-run${command:+,tune}}" source run_scripts/environment.sh

workers="${workers:-2}"
words=("${command:-sweep}")
[ -n "${command:-}" ] || words+=(run)
# A worker's part of the cores that this script may use; all of them if there are too few.
cores='
import os, sys
worker, workers = map(int, sys.argv[1:])
cores = sorted(os.sched_getaffinity(0))
size = len(cores) // workers
print(*(cores[worker * size : (worker + 1) * size] or cores), sep=",")
'
programs=()
for ((worker = 0; worker < workers; worker++)); do
  pinned=()
  if command -v taskset >/dev/null; then
    pinned=(taskset -c "$(.venv/bin/python -c "$cores" "$worker" "$workers")")
  fi
  ${pinned[@]+"${pinned[@]}"} .venv/bin/python -m sl_discs "${words[@]}" "$@" &
  programs+=("$!")
done
again=0
trap 'again=1; kill -TERM "${programs[@]}" 2>/dev/null || true' INT TERM
greatest=0
for program in "${programs[@]}"; do
  again=1
  while [ "$again" = 1 ]; do # a signal ends the shell's wait, not the program
    again=0
    code=0
    wait "$program" || code=$?
  done
  [ "$code" != "$((128 + 15))" ] || code=75 # signalled before it had a handler
  [ "$code" -le "$greatest" ] || greatest="$code"
done
if [ -z "${command:-}" ] && [ "$greatest" != 2 ]; then
  .venv/bin/python -m sl_discs sweep status "$@"
  .venv/bin/python -m sl_discs sweep collect "$@" || true
fi
exit "$greatest"
