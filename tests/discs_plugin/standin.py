"""A small package in the place of DISCS, with its calling conventions and no line of it: the texts of its files."""

from pathlib import Path

_CONFIG = """
from ml_collections import config_dict

def get_config():
    return config_dict.ConfigDict({})
"""


def _config(**fields) -> str:
    return _CONFIG.replace("{}", repr(fields))


_EXPERIMENT = {
    "name": "Experiment", "evaluator": "ess_eval", "num_models": 1, "batch_size": 8, "chain_length": 1100,
    "run_parallel": True, "save_root": "./discs/results", "co_opt_prob": False,
}  # fmt: skip
# One jitted step over all models, a temperature at each step, one results file.
_MAIN = """
import functools
import importlib
import pickle
from pathlib import Path

from absl import flags
import jax
import jax.numpy as jnp
from ml_collections import config_flags
import numpy as np

from discs.common import configs

_CONFIG = config_flags.DEFINE_config_file("config", "./discs/common/configs.py")
_MODEL = config_flags.DEFINE_config_file("model_config")
_SAMPLER = config_flags.DEFINE_config_file("sampler_config")
_RUN_LOCAL = flags.DEFINE_boolean("run_local", False, "Save under ./discs/results.")

def get_main_config():
    config = configs.get_config()
    config.update(_CONFIG.value)
    config.sampler.update(_SAMPLER.value)
    config.model.update(_MODEL.value)
    return config

def update_save_dir(config):
    if _RUN_LOCAL.value:
        config.experiment.save_root = "./discs/results/" + config.model.name

def main(_):
    config = get_main_config()
    update_save_dir(config)
    settings = config.experiment
    Path(settings.save_root).mkdir(parents=True, exist_ok=True)
    model = importlib.import_module(f"discs.models.{config.model.name}").build_model(config)
    sampler = importlib.import_module(f"discs.samplers.{config.sampler.name}").build_sampler(config)
    models, chains, rng = settings.num_models, settings.batch_size, jax.random.PRNGKey(0)
    params = model.make_init_params(jax.random.split(rng, 1))
    state = jax.vmap(sampler.make_init_state)(jax.random.split(rng, models))
    x = model.get_init_samples(rng, models * chains).reshape(models, chains, *config.model.shape)
    step = jax.jit(jax.vmap(functools.partial(sampler.step, model=model)))
    best = jnp.full(models, -jnp.inf)
    for number in range(1, settings.chain_length + 1):
        params["temperature"] = jnp.full(models, 0.1 ** (number / settings.chain_length))
        keys = jax.random.split(jax.random.fold_in(rng, number), models)
        x, state, _ = step(rng=keys, x=x, model_param=params, state=state, x_mask=None)
        values = jax.vmap(model.forward)(params, x) * params["temperature"][:, None]
        best = jnp.maximum(best, values.max(axis=1))
    assert (state["steps"] == settings.chain_length).all()
    best = np.array(best)
    results = {"best_ratio": best, "best_ratio_mean": best.mean()}
    (Path(settings.save_root) / "results.pkl").write_bytes(pickle.dumps(results))
"""
# A chain of coupled sites that gives values and gradients.
_PAIRS = """
import jax
import jax.numpy as jnp
import pickle5

class Pairs:
    def __init__(self, config):
        self.shape, self.count = config.model.shape, config.experiment.num_models

    def make_init_params(self, rng):
        bias = jax.random.normal(rng, self.shape)
        return {"bias": jnp.stack([bias] * self.count), "temperature": jnp.ones(self.count)}

    def get_init_samples(self, rng, count):
        return jax.random.bernoulli(rng, 0.5, (count, *self.shape)).astype(jnp.int32)

    def forward(self, params, x):
        flat, bias = x.reshape(x.shape[0], -1), params["bias"].reshape(-1)
        return (flat @ bias - jnp.sum(flat[:, 1:] * flat[:, :-1], axis=1)) / params["temperature"]

    def get_value_and_grad(self, params, x):
        x = x.astype(jnp.float32)
        return self.forward(params, x), jax.grad(lambda z: jnp.sum(self.forward(params, z)))(x)

def build_model(config):
    return Pairs(config)
"""
_ABSTRACT = """
import jax.numpy as jnp

class AbstractSampler:
    def __init__(self, config):
        self.num_categories = config.model.num_categories

    def make_init_state(self, rng):
        return {"num_ll_calls": jnp.zeros((), jnp.int32), "steps": jnp.zeros((), jnp.int32)}
"""
# Metropolis at one site of each chain, by gains; its scale begins as an integer and ends as a float.
_ONESITE = """
import clu.metric_writers
import jax
import jax.numpy as jnp

from discs.samplers import abstractsampler

class OneSite(abstractsampler.AbstractSampler):
    def __init__(self, config):
        pass

    def make_init_state(self, rng):
        return super().make_init_state(rng) | {"scale": jnp.zeros((), jnp.int32)}

    def step(self, model, rng, x, model_param, state, x_mask=None):
        choose, accept = jax.random.split(rng)
        flat = x.reshape(x.shape[0], -1)
        site = jax.random.randint(choose, (x.shape[0],), 0, flat.shape[1])
        rows = jnp.arange(x.shape[0])
        _, grad = model.get_value_and_grad(model_param, x)
        gain = ((1 - 2 * x) * grad).reshape(flat.shape)[rows, site]
        log_acceptance = jnp.clip(gain, a_max=0.0)
        accepted = jnp.log(jax.random.uniform(accept, (x.shape[0],))) < log_acceptance
        y = flat.at[rows, site].add(jnp.where(accepted, 1, 0)) % 2
        state = jax.tree_map(jnp.array, state)
        state["steps"] += 1
        state["num_ll_calls"] += 2
        state["scale"] = state["scale"] + 0.5
        return y.reshape(x.shape), state, jnp.mean(jnp.exp(log_acceptance))

build_sampler = OneSite
"""
# Gibbs at one site of two or more values, evaluating states of one chain after the other; forgets its counters.
_BALL = """
import jax
import jax.numpy as jnp

from discs.samplers import abstractsampler

class Ball(abstractsampler.AbstractSampler):
    def step(self, model, rng, x, model_param, state, x_mask=None):
        choose, select = jax.random.split(rng)
        site = jax.random.randint(choose, (), 0, x.shape[1])

        def body(i, carry):
            x, params = carry
            others = [(x[i, site] + k) % self.num_categories for k in range(1, self.num_categories)]
            ball = jnp.stack([x[i], *(x[i].at[site].set(value) for value in others)])
            values = model.forward(params, ball)
            pick = jax.random.categorical(jax.random.fold_in(select, i), values)
            return x.at[i].set(ball[pick]), params

        x, _ = jax.lax.fori_loop(0, x.shape[0], body, (x, model_param))
        return x, {"num_ll_calls": state["num_ll_calls"] + 2}

build_sampler = Ball
"""
_FILES = {
    "__init__.py": "",
    "common/configs.py": _config(model={"name": "", "data_root": ""}, sampler={"name": ""}, experiment=_EXPERIMENT),
    "experiment/main_sampling.py": _MAIN,
    "models/pairs.py": _PAIRS,
    "models/configs/pairs_config.py": _config(name="pairs", shape=(5,), num_categories=2, save_dir_name="pairs"),
    "samplers/__init__.py": "",
    "samplers/abstractsampler.py": _ABSTRACT,
    "samplers/onesite.py": _ONESITE,
    "samplers/ball.py": _BALL,
    "samplers/configs/onesite_config.py": _config(name="onesite", patience=3),
    "samplers/configs/ball_config.py": _config(name="ball", patience=3),
}


def write_standin(folder: Path) -> Path:
    """Writes the package `discs` into a folder, and returns that."""
    for name, text in _FILES.items():
        path = folder / "discs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
