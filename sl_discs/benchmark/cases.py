"""The cases of the benchmark: small sets of drawn graphs, with DISCS's annealing of their family."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from sl_discs.benchmark import families
from sl_discs.benchmark.choices import check_choice
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import Dataset, load_dataset
from sl_discs.instances.graph import Graph


@dataclasses.dataclass(frozen=True)
class Tuned:
    """A sampler with its annealing, chosen on other graphs of the family for the best objective in a fixed time.

    The search covered metropolis, gwg and path_auxiliary with six pairs of temperatures each, on four graphs of
    another seed, with up to a second of one core per graph.

    Attributes:
      sampler: its name.
      steps: number of its steps per step of `--steps`, so that run times are similar.
      initial: temperature at step 0.
      final: temperature at the end of an exponential decay.
    """

    sampler: str
    steps: float
    initial: float
    final: float

    def settings(self, settings: Settings, pace: float = 1) -> Settings:
        """The settings of a run with this annealing, and with `steps` times `pace` as many steps."""
        return dataclasses.replace(
            settings,
            chain_length=max(settings.log_every_steps, round(pace * self.steps * settings.chain_length)),
            t_schedule="exp_decay",
            init_temperature=self.initial,
            final_temperature=self.final,
            decay_rate=self.final / self.initial,
        )


@dataclasses.dataclass(frozen=True)
class Case:
    """A problem on a few graphs.

    Attributes:
      name: name in `--cases`.
      problem: name of the problem, such as `mis`.
      graphs: draws the first graphs, given their number.
      annealing: fields of `Settings`.
      tuned: the choice that `--samplers=tuned` runs; None if there is none.
    """

    name: str
    problem: str
    graphs: Callable[[int], list[Graph]]
    annealing: dict[str, Any]
    tuned: Tuned | None = None

    def dataset(self, num_graphs: int) -> Dataset:
        """The first graphs of the case, the same on every machine."""
        graphs = self.graphs(num_graphs)
        index = list(range(num_graphs))
        return Dataset(f"{self.problem}/{self.name}", self.problem, "generated", self.name, graphs, index, num_graphs)

    def settings(self, num_graphs: int, num_chains: int, num_steps: int) -> Settings:
        """The settings of a run on all graphs at once with the case's annealing."""
        return Settings(
            batch_size=num_chains,
            chain_length=num_steps,
            log_every_steps=min(100, num_steps),
            instances_per_batch=num_graphs,
            **self.annealing,
        )


def family(problem: str, graph_type: str, cfg_str: str) -> Callable[[int], list[Graph]]:
    """Draws the first graphs of a random family; can be sent to another process."""
    return functools.partial(_drawn, problem, graph_type, cfg_str)


def _drawn(problem: str, graph_type: str, cfg_str: str, count: int) -> list[Graph]:
    return load_dataset(problem, graph_type, cfg_str, None, num_instances=count).graphs


def _exp_decay(rate: float, floor: float) -> dict[str, Any]:
    return {"t_schedule": "exp_decay", "init_temperature": 1.0, "decay_rate": rate, "final_temperature": floor}


CASES = {
    case.name: case
    for case in (
        Case(
            "mis-er-0.05",
            "mis",
            family("mis", "er_density", "r-0.05"),
            _exp_decay(0.05, 1e-4),
            Tuned("metropolis", 100, 0.4, 0.15),
        ),
        Case("mis-er-0.10", "mis", family("mis", "er_density", "r-0.10"), _exp_decay(0.05, 1e-4)),
        Case("mis-er-0.20", "mis", family("mis", "er_density", "r-0.20"), _exp_decay(0.05, 1e-4)),
        Case(
            "mis-er-0.25",
            "mis",
            family("mis", "er_density", "r-0.25"),
            _exp_decay(0.05, 1e-4),
            Tuned("path_auxiliary", 2, 0.4, 0.15),
        ),
        Case(
            "mis-satlib-like",
            "mis",
            families.satlib_like,
            _exp_decay(0.005, 1e-5),
            Tuned("metropolis", 120, 0.2, 0.1),
        ),
        Case(
            "maxcut-ba-512",
            "maxcut",
            family("maxcut", "ba", "r-ba-4-n-512-600"),
            _exp_decay(0.1, 1e-6),
            Tuned("metropolis", 100, 1.0, 0.3),
        ),
        Case(
            "maxcut-er-256",
            "maxcut",
            family("maxcut", "er", "r-er-0.15-n-256-300"),
            {"t_schedule": "linear", "init_temperature": 1.0, "final_temperature": 0.5},
            Tuned("path_auxiliary", 1, 2.0, 0.3),
        ),
        Case(
            "maxcut-ba-1024",
            "maxcut",
            family("maxcut", "ba", "r-ba-4-n-1024-1100"),
            _exp_decay(0.1, 1e-6),
            Tuned("metropolis", 120, 1.5, 0.25),
        ),
        Case(
            "maxcut-torus-64",
            "maxcut",
            families.toroidal(64, 2),
            _exp_decay(0.1, 1e-6),
            Tuned("metropolis", 100, 1.0, 0.3),
        ),
        Case("maxcut-torus-15-3d", "maxcut", families.toroidal(15, 3), _exp_decay(0.1, 1e-6)),
        Case("maxcut-torus-15-3d-gaussian", "maxcut", families.toroidal(15, 3, real=True), _exp_decay(0.1, 1e-6)),
        Case("maxcut-sparse-10000", "maxcut", families.sparse(10_000, 4), _exp_decay(0.1, 1e-6)),
        Case("maxcut-dense-1000", "maxcut", families.complete(1_000), _exp_decay(0.1, 1e-6)),
        Case("maxcut-dense-2500", "maxcut", families.complete(2_500), _exp_decay(0.1, 1e-6)),
        Case("maxcut-planar-800", "maxcut", families.planar_union(800), _exp_decay(0.1, 1e-6)),
        Case("mis-sparse-10000", "mis", families.sparse(10_000, 5), _exp_decay(0.05, 1e-4)),
        Case("mis-triangles", "mis", families.triangles(126), _exp_decay(0.05, 1e-4)),
        Case("maxclique-hidden", "maxclique", families.hidden_clique(400, 0.75, 40), _exp_decay(0.1, 1e-3)),
        Case("maxclique-brock-400", "maxclique", families.hidden_clique(400, 0.75, 29), _exp_decay(0.1, 1e-3)),
        Case(
            "maxclique-rb",
            "maxclique",
            family("maxclique", "rb", "_"),
            _exp_decay(0.1, 1e-3),
            Tuned("gwg", 2.5, 0.4, 0.05),
        ),
    )
}


def chosen_cases(names: list[str]) -> list[Case]:
    """Cases by name.

    Raises:
      InputError: an unknown name.
    """
    check_choice("cases", names, CASES)
    return [CASES[name] for name in names]
