"""Faults that the suite must notice, one at a time: `python tests/mutations.py [NUMBER ...]`.

Each is made in a copy of the checkout, where the tests that should fail are run. The command ends
with 1 if a fault survives, that is, if those tests pass. With numbers only those are tried.
"""

import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# Seconds after which the tests of a fault are taken to wait for ever.
LIMIT_S = 3600


class Mutation(NamedTuple):
    """A fault.

    Attributes:
      fault: what is wrong with it.
      file: in the package.
      before: text that stands there once.
      after: what takes its place.
      tests: arguments of pytest, with which one of the tests fails.
    """

    fault: str
    file: str
    before: str
    after: str
    tests: str


MUTATIONS = [
    Mutation(
        "no margin for rounding in the certificate of the semidefinite bound",
        "solving/provers/semidefinite.py",
        "theta = _SAFETY * (size + _SAFETY) * _EPS * float(diagonal.sum())",
        "theta = 0.0",
        "tests/solving/test_semidefinite.py -k infeasible",
    ),
    Mutation(
        "cycles of pairs bound more than they do",
        "solving/provers/semidefinite.py",
        "self._constants = length - 2.0",
        "self._constants = length - 3.0",
        "tests/solving/test_semidefinite.py -k multipliers",
    ),
    Mutation(
        "covers by independent sets count half of their weight",
        "solving/provers/cliques.py",
        "bound += least\n",
        "bound += 0.5 * least\n",
        "tests/solving/test_cliques.py -k heaviest",
    ),
    Mutation(
        "a lower level of the clique search begins with too good a clique",
        "solving/provers/cliques.py",
        "rest = max(float(tree.best[0] - tree.totals[1]), 0.0)",
        "rest = float(tree.best[0])",
        "tests/solving/test_cliques.py -k heaviest",
    ),
    Mutation(
        "nodes with several neighbours in S count as unconfined",
        "solving/set_reductions.py",
        "if count == 1:",
        "if count >= 1:",
        "tests/soundness/test_soundness.py -k reductions",
    ),
    Mutation(
        "funnels whose neighbours are no clique",
        "solving/set_reductions.py",
        "odd if total == 2 * most else -2",
        "odd",
        "tests/soundness/test_soundness.py -k reductions",
    ),
    Mutation(
        "an answer is proved by any bound",
        "solving/board.py",
        "self.closed = standing == 0",
        "self.closed = True",
        "tests/soundness/test_soundness.py -k board",
    ),
    Mutation(
        "the core of a clique is one size too small",
        "solving/set_reductions.py",
        "if mass <= size]",
        "if mass <= size + 1]",
        "tests/solving/test_reductions.py -k core",
    ),
    Mutation(
        "couplings dominate from two thirds on",
        "solving/spin_reductions.py",
        "if largest >= sum(",
        "if 2 * largest >= sum(",
        "tests/soundness/test_soundness.py -k reductions",
    ),
    Mutation(
        "the constant of a star",
        "solving/spin_reductions.py",
        "(agree + of_a + of_b + of_c) / 4",
        "(agree + of_a + of_b + of_c) / 3",
        "tests/soundness/test_soundness.py -k reductions",
    ),
    Mutation(
        "bounds of what is left without the constant",
        "solving/presolved.py",
        "worst([bound + self.constant, *values])",
        "worst([bound, *values])",
        "tests/soundness/test_soundness.py -k reductions",
    ),
    Mutation(
        "the rounding of reduced coefficients is left out of bounds",
        "solving/presolved.py",
        "bound += (1 if problem.maximise else -1) * ROUNDED * problem.magnitude()",
        "bound += 0",
        "tests/soundness/test_soundness.py -k reductions",
    ),
    Mutation(
        "two negative outliers in the certificate of fast mixing",
        "sampling/directions.py",
        "outer_eigenvalues(spin, 1, 2, is_over)",
        "outer_eigenvalues(spin, 1, 3, is_over)",
        "tests/sampling/test_sample.py -k certificates",
    ),
    Mutation(
        "the limit of R-hat forgets that the worst of many is judged",
        "sampling/diagnostics.py",
        "spread_by_chance(2 * num_groups, FALSE_ALARM / tests)",
        "spread_by_chance(2 * num_groups, FALSE_ALARM)",
        "tests/sampling/test_parts_of_sampling.py -k independent_draws",
    ),
    Mutation(
        "draws of a ladder are less than a round trip apart",
        "sampling/tempering.py",
        "return max(sweeps_a_draw(values[:, :, -1], warm.states), min(trip, MOST_SWEEPS_A_DRAW))",
        "return sweeps_a_draw(values[:, :, -1], warm.states)",
        "tests/sampling/test_parts_of_sampling.py -k round_trip",
    ),
    Mutation(
        "the draws' drift is judged at one observable's rate of false alarms",
        "sampling/diagnostics.py",
        "spread_by_chance(2 * num_groups, 0.5 / tests)",
        "spread_by_chance(2 * num_groups, 0.5)",
        "tests/sampling/test_parts_of_sampling.py -k independent_draws",
    ),
    Mutation(
        "errors of a curve by tempering too small by the root of the number of parts",
        "sampling/thermodynamics.py",
        "np.sqrt((len(parts) - 1) * without.var(axis=0))",
        "np.sqrt(without.var(axis=0))",
        "tests/sampling/test_thermodynamics.py -k curve_by_tempering",
    ),
    Mutation(
        "chains that stay where they began are not said",
        "sampling/localized.py",
        ").max() > _MOST_KEPT:",
        ").max() > 1e9:",
        "tests/sampling/test_sample.py -k wrong_weights",
    ),
    Mutation(
        "one checkpoint is kept in place of two",
        "chains/checkpoint.py",
        "self._states()[:-_KEPT_STATES]",
        "self._states()[:-1]",
        "tests/experiment/test_checkpoint.py -k falls_back",
    ),
    Mutation(
        "couplings copied by the engine cpu take no memory",
        "chains/batches.py",
        "couplings += couplings\n",
        "couplings += 0\n",
        "tests/experiment/test_memory.py tests/test_capacity.py",
    ),
    Mutation(
        "running times of DISCS's results are not halved",
        "experiment/results.py",
        "float(sampler.run_s) / 2",
        "float(sampler.run_s)",
        "tests/results/test_results.py -k pickle",
    ),
    Mutation(
        "the way back is left out of a path's acceptance",
        "samplers/path.py",
        "jnp.minimum(change + log_back - log_there, 0.0)",
        "jnp.minimum(change, 0.0)",
        "tests/testing/test_single_steps.py -k 'reference and path'",
    ),
    Mutation(
        "Metropolis at twice the temperature",
        "samplers/single_site.py",
        "return jnp.exp(jnp.minimum(change, 0.0))",
        "return jnp.exp(jnp.minimum(change / 2, 0.0))",
        "tests/samplers/test_laws.py -k sequential_scan",
    ),
    Mutation(
        "dmala accepts all proposals",
        "samplers/langevin.py",
        "acceptance = jnp.exp(jnp.minimum(log_ratio, 0.0))",
        "acceptance = jnp.float32(1)",
        "tests/testing/test_single_steps.py -k 'reference and dmala'",
    ),
    Mutation(
        "steps lost to flooring are lost",
        "localization/schedule.py",
        "steps[order[:left]] += 1",
        "steps[order[:left]] += 0",
        "tests/localization/test_schedules.py -k budgets",
    ),
    Mutation(
        "the observation's noise has the variance dt squared",
        "localization/schedule.py",
        "(self.sigma * np.sqrt(np.diff(times)))",
        "(self.sigma * np.diff(times))",
        "tests/localization/test_schedules.py -k levels",
    ),
    Mutation(
        "states swap against their temperatures on the reference",
        "engines/program.py",
        "(rate - jnp.roll(rate, -1)) *",
        "(jnp.roll(rate, -1) - rate) *",
        "tests/engines/test_ladder.py -m slow -k places",
    ),
    Mutation(
        "states of chains in step swap too rarely",
        "engines/cpu/lanes.py",
        "np.exp(min(rate * gained, 0.0))",
        "np.exp(min(2 * rate * gained, 0.0))",
        "tests/engines/test_ladder.py tests/engines/test_lanes.py -k 'places or ladders'",
    ),
    Mutation(
        "a state stands for its opposite although there are fields",
        "engines/cpu/lanes.py",
        "_U(0 if target.symmetric and 2 * different",
        "_U(0 if 2 * different",
        "tests/engines/test_lanes.py -k cluster",
    ),
    Mutation(
        "the least temperature of the compiled engines is far too high",
        "engines/arrays.py",
        "_LARGEST_LOGIT = np.float64(1e36)",
        "_LARGEST_LOGIT = np.float64(1e3)",
        "tests/engines/test_engines.py",
    ),
]


def survives(mutation: Mutation) -> bool:
    """Returns whether the tests pass in a copy with the fault; all their output is dropped."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        tracked = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        ).stdout.decode()
        for name in filter(None, tracked.split("\0")):
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
        file = copy / "sl_discs" / mutation.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutation.before) != 1:
            raise SystemExit(f"{mutation.file} does not have {mutation.before!r} once")
        file.write_text(text.replace(mutation.before, mutation.after), encoding="utf-8")
        path = os.pathsep.join(filter(None, [str(copy), os.environ.get("PYTHONPATH")]))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *shlex.split(mutation.tests)],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            timeout=LIMIT_S,
        )
        # 1: tests failed. Anything else would be a fault of this script, such as a missing file.
        if done.returncode not in (0, 1):
            raise SystemExit(f"{mutation.tests}: {done.stdout.decode()[-2000:]}")
        return done.returncode == 0


def cpu_seconds() -> float:
    """Returns the CPU seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(numbers: list[str]) -> int:
    chosen = [int(number) for number in numbers] or range(1, len(MUTATIONS) + 1)
    survivors = 0
    for number in chosen:
        mutation = MUTATIONS[number - 1]
        begin = cpu_seconds()
        passed = survives(mutation)
        survivors += passed
        outcome = "SURVIVES" if passed else "noticed"
        used = cpu_seconds() - begin
        print(f"{number:2} {outcome} {used:4.0f} CPU s  {mutation.fault}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} faults are noticed")
    return int(survivors > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
