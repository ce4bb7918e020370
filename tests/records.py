"""Records of runs that were not made."""

import numpy as np

from sl_discs.experiment.record import ExperimentRecord, InstanceRecord, SamplerRecord
from sl_discs.experiment.settings import Settings
from sl_discs.instances.graph import Dataset


def build_sampler(seed, num_instances=4, num_logged=5, references=None, level=60.0):
    rng = np.random.default_rng(seed)
    best = np.round(level + rng.normal(size=num_instances))
    rise = np.sort(rng.random((num_logged, num_instances)), axis=0)
    trajectory = best - 0.0001 - 10 * (rise[-1] - rise)
    instances = [
        InstanceRecord(
            name=f"g{g}",
            best=float(best[g]),
            best_logged=float(best[g] - 1),
            final=float(best[g] - 2),
            feasible=True,
            reference=None if references is None else references[g],
            solution=rng.integers(0, 2, size=7 + g).astype(np.int8),
        )
        for g in range(num_instances)
    ]
    acceptance, hops = rng.random((2, num_logged, num_instances))
    temperature = np.geomspace(1.0, 0.05, num_logged)
    return SamplerRecord(
        instances,
        trajectory,
        acceptance,
        4 * hops,
        temperature,
        chain_steps_per_s=1.25e6,
        compile_s=3.5,
        run_s=12.0,
    )


def make_record(
    names=("gwg", "sl_gwg"),
    dataset="mis/er_density/r-0.10",
    source="generated",
    changes=None,
    chain_length=500,
    **sampler,
):
    steps = chain_length // sampler.get("num_logged", 5)
    settings = Settings(chain_length=chain_length, log_every_steps=steps, seed=3)
    detail = "erdos_renyi(n=700..800, p=0.10), seed 3"
    return ExperimentRecord(
        dataset=Dataset(dataset, dataset.split("/")[0], source, detail, [], [], 0),
        settings=settings,
        config={
            "experiment": vars(settings),
            "model": {"penalty": 1.0001},
            "samplers": {name: {"name": name, **(changes or {})} for name in names},
            "sampler": {"radius": np.float32(0.5), "sizes": (1, 2)},
        },
        samplers={name: build_sampler(seed, **sampler) for seed, name in enumerate(names)},
        device="cpu, 2 cores",
        versions={"jax": "0.10.2"},
    )
