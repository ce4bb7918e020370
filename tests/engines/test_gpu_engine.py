"""The GPU engine carries chains as the reference does, and its kernel can be lowered for a GPU.

The law of its steps is tested in tests/testing.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_except

from sl_discs.engines import registry
from sl_discs.engines.contract import Program, init_chains
from sl_discs.engines.gpu.engine import Gpu, advance, dense_rows
from sl_discs.engines.registry import choose_engine, get_engine
from sl_discs.errors import InputError
from sl_discs.experiment.mesh import Layout, make_mesh
from sl_discs.experiment.run import run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.method import build_method
from sl_discs.localization.schedule import Localization
from sl_discs.models.coupling import dense_coupling, sparse_coupling
from sl_discs.models.quadratic import QuadraticModel
from sl_discs.samplers.dmala import DMALA
from sl_discs.samplers.gibbs import Gibbs
from sl_discs.samplers.gwg import GWG
from sl_discs.samplers.metropolis import Metropolis
from sl_discs.samplers.path_auxiliary import PathAuxiliary
from sl_discs.testing import standard_cases
from sl_discs.testing.agreement import check_agreement
from sl_discs.testing.engines import batch_of, play_program

SAMPLERS = {
    "gwg": GWG(),
    "gwg, 3 flips": GWG(num_flips=3),
    "path_auxiliary, 3 flips": PathAuxiliary(num_flips=3),
    "path_auxiliary, adapted": PathAuxiliary(adaptive=True, adapt_until=20),
    "gibbs": Gibbs(),
    "metropolis": Metropolis(),
    "dmala": DMALA(expected_flips=1.5),
    "dmala, adapted": DMALA(adaptive=True, adapt_until=20),
    "dmala, fixed": DMALA(scaling="fixed"),
}
IN_STEPS = SAMPLERS | {
    "dula": DMALA(adjusted=False),
    "gwg, adapting": GWG(adaptive=True),
    "path_auxiliary": PathAuxiliary(),
    "path_auxiliary, adapting": PathAuxiliary(num_flips=3, adaptive=True),
}
QUADRATIC = [case for case in standard_cases() if isinstance(case.model, QuadraticModel)]
MAPPED, REFERENCE = Gpu("mapped"), get_engine("reference")


def annealed(steps):
    """A localized program and the standard deviation of Y_0."""
    plan = Localization(K=6, sigma=2.0, n_min=3)
    return Program(np.linspace(2.0, 0.5, steps).astype(np.float32), plan.levels(steps)), plan.initial_noise()


def start_at(x, model, sampler, batch, noise):
    return jax.jit(lambda batch: init_chains(model, sampler, batch, jnp.asarray(x, jnp.int8), noise))(batch)


def begin(sampler, case, num_chains, noise):
    batch = batch_of(case, num_chains)
    return batch, start_at(np.tile(case.start, (1, num_chains, 1)), case.model, sampler, batch, noise)


@pytest.mark.slow
def test_cut_into_calls_of_the_interpreted_kernel_it_is_the_same_run():
    """Also in the middle of a level; and the field that is carried along is that of the state.

    To rounding alone: XLA compiles two programs, and fuses products with sums in each as it likes.
    """
    case, sampler = QUADRATIC[3], PathAuxiliary(adaptive=True)
    program, noise = annealed(60)
    batch, start = begin(sampler, case, 16, noise)
    once, traced = play_program(MAPPED, case.model, sampler, batch, start, program, intervals=4)
    play = Gpu("interpret").prepare(case.model, sampler, batch, program, make_mesh(Layout(1, 1)), 0)
    twice = start
    for k in range(4):
        twice, trace = play(twice, 15 * k, 1, 15)
        np.testing.assert_array_equal(trace.value[0], traced.value[k])
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), once, twice)
    assert once.chain.sampler.steps[0, 0] == 60 and once.chain.sampler.num_ll_calls[0, 0] == 240
    fresh = start_at(once.chain.x, case.model, sampler, batch, None).chain.field
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=1e-4), once.chain.field, fresh)
    for best in (once.best, once.best_logged):
        field = start_at(best.x, case.model, sampler, batch, None).chain.field
        value = field.linear + case.params.base.scale * field.pairs
        np.testing.assert_allclose(value, best.value, atol=1e-4)
    np.testing.assert_array_equal(once.best_logged.value, traced.value.max(axis=0))
    assert (once.best.value >= once.best_logged.value).all()
    assert once.chain.observation.y.shape == (1, 16, 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLERS)
def test_the_kernel_interpreted_gives_the_chains_of_its_body_mapped(name):
    """Two instances of different c, and localized."""
    case, sampler = QUADRATIC[2], SAMPLERS[name]
    program, noise = annealed(24)
    batch, start = begin(sampler, case, 2, noise)
    batch, start = jax.tree.map(lambda leaf: jnp.concatenate([leaf, leaf]), (batch, start))
    batch = batch._replace(params=batch.params._replace(linear=batch.params.linear * jnp.array([[1.0], [0.5]])))
    results = [
        play_program(Gpu(way), case.model, sampler, batch, start, program, intervals=2)
        for way in ("mapped", "interpret")
    ]
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-5), *results)
    assert (results[0][1].value[:, 0] != results[0][1].value[:, 1]).any()


@pytest.mark.parametrize("name", slow_except(SAMPLERS, ("gwg, 3 flips", "path_auxiliary, adapted", "gibbs", "dmala")))
def test_the_kernel_can_be_lowered_for_a_gpu(name):
    """To Triton's operations, which needs no GPU; compiling them to machine code does."""
    pytest.importorskip("jaxlib.triton", reason="this jaxlib cannot lower to Triton")
    case, sampler = QUADRATIC[3], SAMPLERS[name]
    program, noise = annealed(24)
    arguments = begin(sampler, case, 2, noise)
    temperature, mesh = program.temperature.reshape(2, 12), make_mesh(Layout(1, 1))
    run = jax.jit(
        lambda batch, chains: advance(
            batch, chains, program.levels, 0, temperature, 0, model=case.model, sampler=sampler, mesh=mesh
        )
    )
    lowered = run.trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()
    assert "triton" in lowered and "sl_discs_play" in lowered


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_STEPS)
def test_it_agrees_with_the_reference_on_a_benchmark_graph(name):
    check_agreement(MAPPED, IN_STEPS[name])


def test_lists_of_neighbours_are_written_out():
    edges, weights = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 2)]), np.array([1, -2, 3, 1, 5])
    coupling = dense_coupling(edges, weights, 5), sparse_coupling(edges, weights, 5, 4)
    rows = [dense_rows(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], one), 8) for one in coupling]
    np.testing.assert_array_equal(*rows)
    assert rows[1].shape == (1, 5, 8) and rows[1].dtype == jnp.int8
    assert rows[1][0, 0].tolist() == [0, 1, 5, 0, 0, 0, 0, 0]


def test_what_it_cannot_play_is_explained():
    assert get_engine("gpu").obstacle(GWG()) == "it runs on GPUs, and JAX on cpu"
    assert all(MAPPED.obstacle(sampler) is None for sampler in SAMPLERS.values())
    assert "SQRT" in MAPPED.obstacle(GWG(balancing_fn_type="MIN"))
    assert "shared" in MAPPED.obstacle(GWG(adaptive=True, shared_adaptation=True))
    assert "shared" in MAPPED.obstacle(DMALA(shared_scale=True))

    class Mine(GWG):
        """Another sampler, whatever it inherits."""

    assert "GWG, PathAuxiliary" in MAPPED.obstacle(Mine())


def test_it_plays_only_where_it_is_asked_for_and_can():
    with pytest.raises(InputError, match="engine is 'gpu', which cannot run GWG: it runs on GPUs, and JAX on cpu"):
        choose_engine("gpu", GWG())
    assert choose_engine("auto", GWG())[0].name != "gpu"


def test_auto_takes_it_once_it_is_entered(monkeypatch):
    """On a device that the engine `cpu` does not play on."""
    monkeypatch.setattr(get_engine("cpu"), "obstacle", lambda sampler: "no CPU")
    monkeypatch.setattr(get_engine("gpu"), "way", "mapped")
    assert choose_engine("auto", GWG()) == (REFERENCE, "not cpu: no CPU")
    monkeypatch.setitem(registry._AUTO, "gpu", "the fastest on GPUs")
    assert choose_engine("auto", GWG()) == (get_engine("gpu"), "auto: the fastest on GPUs")
    engine, note = choose_engine("auto", GWG(balancing_fn_type="MIN"))
    assert engine is REFERENCE and note.startswith(
        "not cpu: no CPU; not gpu: it only supports balancing_fn_type SQRT"
    )


def test_a_whole_run_on_it(monkeypatch):
    """Results verified; the kernel's body stands in for the kernel."""
    monkeypatch.setattr("sl_discs.experiment.player.choose_engine", lambda wanted, sampler: (MAPPED, ""))
    dataset = load_dataset("maxcut", "ba", "r-ba-4-n-64-75", None, num_instances=2)
    settings = Settings(batch_size=4, chain_length=60, log_every_steps=30, engine="gpu")
    record = run_sampler(
        "maxcut", dataset, 1.0, build_method({"name": "sl_gibbs", "K": 8}, 4), settings, lambda _: None
    )
    assert record.engine == "gpu"
    logged = [instance.best_logged for instance in record.instances]
    np.testing.assert_array_equal(record.trajectory[-1], logged)
    assert record.trajectory.shape[0] == 2
    assert all(instance.best >= instance.best_logged > 0 for instance in record.instances)
