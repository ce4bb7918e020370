"""Samplers and problems of this project in DISCS's calling convention."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from marks import slow_except
from test_register import whole_config

from sl_discs.discs_plugin.base_sampler import States
from sl_discs.discs_plugin.own import BatchModel, OwnProblem, OwnSampler, problem_config
from sl_discs.instances.dataset import load_dataset
from sl_discs.models.base import TargetModel
from sl_discs.problems.graph_kind import graph_kind
from sl_discs.samplers.base import Info, Sampler
from sl_discs.samplers.langevin import DMALA
from sl_discs.samplers.path import GWG, PathAuxiliary
from sl_discs.testing import check_case, standard_cases


@pytest.mark.parametrize(
    "kernel",
    [PathAuxiliary(num_flips=3), *(pytest.param(one, marks=pytest.mark.slow) for one in (GWG(), DMALA()))],
    ids=lambda kernel: type(kernel).__name__,
)
def test_own_samplers_leave_the_tilted_target_invariant(kernel):
    check_case(OwnSampler(kernel, 4, States((5,))), standard_cases()[2], batches=2**13)


class Still(Sampler):
    """Stays where it is, and has no state."""

    calls_a_step = 3

    def init_state(self, num_sites):
        return ()

    def kernel(self, key, target, chain):
        return chain, Info(jnp.float32(1), jnp.float32(0))


def test_calls_are_counted_for_a_sampler_whose_state_does_not_count_them():
    own, x, target = OwnSampler(Still(), 4, States((5,))), jnp.zeros((4, 5), jnp.int32), standard_cases()[0].target
    x, state, _ = own.step(TargetModel(), jax.random.PRNGKey(0), x, target, own.make_init_state(None))
    assert (int(state["num_ll_calls"]), int(state["steps"])) == (3, 1)


def test_a_batch_model_follows_flips():
    class Inner:
        def get_value_and_grad(self, params, x):
            assert x.shape == (1, 2, 2)
            return jnp.sum(x * params, axis=(1, 2)), params[None]

    params = jnp.array([[0.5, -1.0], [2.0, 0.0]])
    model = BatchModel(Inner(), States((2, 2)))
    x = jnp.array([1, 0, 1, 0], jnp.int8)
    field = model.init(params, x)
    assert model.num_sites == 4 and float(model.value(params, x, field)) == 2.5
    np.testing.assert_array_equal(model.gains(params, x, field), [-0.5, -1.0, -2.0, 0.0])


@pytest.mark.parametrize("problem", slow_except(["mis", "maxcut", "maxclique"], ["mis"]))
def test_own_problems_are_the_problems(standin, problem):
    config = whole_config("sl_onesite")
    config.model.update(problem_config(problem, f"sldiscs_{problem}"))
    config.model.num_instances = 2
    config.model.cfg_str = {"mis": "r-0.05", "maxcut": "r-ba-4-n-256-300", "maxclique": "_"}[problem]
    model = importlib.import_module(f"discs.models.sldiscs_{problem}").build_model(config)
    assert isinstance(model, OwnProblem) and config.experiment.num_models == 2
    graphs = load_dataset(problem, config.model.graph_type, config.model.cfg_str, None, num_instances=2).graphs
    assert config.model.shape == (max(graph.num_nodes for graph in graphs),)

    batch = model.make_init_params(jax.random.PRNGKey(0))
    assert model.make_init_params(jax.random.PRNGKey(0)) is None
    assert [position for position, _, _ in batch] == [0, 1]
    x = model.get_init_samples(jax.random.PRNGKey(1), 3)
    for (_, params, _), graph in zip(batch, graphs, strict=True):
        params["temperature"] = jnp.float32(0.5)
        terms = graph_kind(problem).terms(graph, 1.0001)
        inside = np.asarray(x)[:, : graph.num_nodes].astype(float)
        pairs = (inside[:, terms.edges[:, 0]] * inside[:, terms.edges[:, 1]]) @ terms.weights
        wanted = inside @ terms.linear + terms.scale * pairs
        np.testing.assert_allclose(model.evaluate(params, x), wanted, rtol=1e-6)
        np.testing.assert_allclose(model.forward(params, x), wanted / 0.5, rtol=1e-6)
        value, grad = model.get_value_and_grad(params, x)
        np.testing.assert_allclose(value, wanted / 0.5, rtol=1e-6)
        flipped = model.forward(params, x.at[:, 3].set(1 - x[:, 3]))
        np.testing.assert_allclose(((1 - 2 * x) * grad)[:, 3], flipped - value, atol=2e-2)
        assert not np.asarray(params["mask"])[graph.num_nodes :].any()
