"""Program: a worker whose runs are small programs; they leave a line in LOG when they begin and when they end.

fake_worker.py ROOT RUNS SECONDS STALE_AFTER [retry]. What a run does is in ROOT/behaviour.json, by its number:
`fail`, `silent` (no results), `interrupted` (exit code 75), `catch` (75 half a second after a signal, as a program
that saves a checkpoint; a second one of the same kind ends it), `stubborn` (minds no signal), `no room` (fails at a
signal), `late` (fails after it has written its results), `hang`, else it sleeps and writes its results.
"""

import sys
from pathlib import Path

from sl_discs.errors import InputError
from sl_discs.sweeps.run_folder import Run
from sl_discs.sweeps.worker import Worker

PROGRAM = """
import json, os, signal, sys, time
root, number, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
def log(word):
    with open(root + "/LOG", "a") as file:
        file.write(f"{word} {number} {os.getpid()}\\n")
path = root + "/behaviour.json"
behaviour = json.load(open(path)).get(number) if os.path.exists(path) else None
def caught(signum, frame):
    log("caught")
    if behaviour == "stubborn":
        return
    if behaviour == "no room":
        sys.exit("error: no room")
    signal.signal(signum, signal.SIG_DFL)
    time.sleep(0.5)
    log("saved")
    sys.exit(75)
if behaviour in ("catch", "stubborn", "no room"):
    for signum in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(signum, caught)
log("begin")
if behaviour == "fail":
    sys.exit("a line before\\nerror: it does not work")
if behaviour == "silent":
    sys.exit()
if behaviour == "interrupted":
    sys.exit(75)
time.sleep(600 if behaviour == "hang" else seconds)
folder = f"{root}/runs/{number}"
with open(folder + "/.new", "w") as file:
    json.dump({"number": int(number)}, file)
os.replace(folder + "/.new", folder + "/results.json")
log("end")
if behaviour == "late":
    sys.exit("error: no figure")
"""


def runs_of(root, count):
    return [Run(n, f"n={n}", Path(root, "runs", str(n)), {"n": str(n)}) for n in range(1, count + 1)]


def main(root, count, seconds, stale_after, *more):
    def command(run):
        return [sys.executable, "-S", "-c", PROGRAM, root, str(run.number), seconds]

    def say(line):
        print(line, flush=True)

    worker = Worker(
        runs_of(root, int(count)), command, say, float(stale_after), beat=float(stale_after) / 8, retry=bool(more)
    )
    try:
        return worker.work()
    except InputError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
