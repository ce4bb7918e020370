"""Registration: names, repetition, and what is refused."""

import importlib
import sys

import jax
import jax.numpy as jnp
import pytest
from ml_collections import config_dict

from sl_discs import discs_plugin
from sl_discs.discs_plugin import modules
from sl_discs.errors import InputError
from sl_discs.samplers import registry


def whole_config(name, **model):
    config = importlib.import_module("discs.common.configs").get_config()
    config.sampler.update(importlib.import_module(f"discs.samplers.configs.{name}_config").get_config())
    config.model.update({"name": "pairs", "shape": (5,), "num_categories": 2} | model)
    return config


def test_names_are_importable_and_configs_complete(standin):
    assert {"sl_onesite", "sl_ball", "sl_nearby", "sldiscs_gwg", "sl_sldiscs_gwg"} <= set(modules.sampler_names())
    for name in modules.sampler_names():
        config = importlib.import_module(f"discs.samplers.configs.{name}_config").get_config()
        assert config.name == name
        assert ("sigma" in config) == name.startswith("sl_")
        module = importlib.import_module(f"discs.samplers.{name}")
        assert hasattr(module.build_sampler(whole_config(name)), "step")
    assert config_dict.ConfigDict(modules.sampler_config("sl_onesite")).patience == 3


def test_samplers_borrowed_from_discs_are_not_added_to_it(standin, monkeypatch):
    before = modules.sampler_names()
    monkeypatch.setitem(registry._FACTORIES, "discs:onesite", None)
    assert "discs:onesite" in registry.known_samplers() and modules.sampler_names() == before


def test_registering_again_changes_nothing_but_the_fixes(standin):
    module = importlib.import_module("discs.samplers.sl_onesite")
    discs_plugin.register(compat=True, fixes=["mask"])
    finders = [finder for finder in sys.meta_path if isinstance(finder, modules.PluginFinder)]
    assert len(finders) == 1 and finders[0].fixes == {"mask"}
    assert importlib.import_module("discs.samplers.sl_onesite") is module


def test_files_and_jax_stay_as_they_are(standin):
    before = {path: path.read_bytes() for path in standin.rglob("*.py")}
    importlib.import_module("discs.samplers.sl_onesite").build_sampler(whole_config("sl_onesite"))
    assert {path: path.read_bytes() for path in standin.rglob("*.py")} == before
    assert not hasattr(jax, "tree_map")
    if jax.__version_info__ >= (0, 10):  # earlier ones accept it themselves
        with pytest.raises(TypeError):
            jnp.clip(jnp.zeros(2), a_min=0.0)
    assert not {"pickle5", "clu", "tensorflow"} & set(sys.modules)


@pytest.mark.parametrize("module", ["discs.samplers.sl_nothing", "discs.samplers.sldiscs_nothing"])
def test_a_sampler_that_does_not_exist(standin, module):
    with pytest.raises(ModuleNotFoundError, match=module):
        importlib.import_module(module)


@pytest.mark.parametrize(
    ("name", "count", "message"),
    [
        ("sl_onesite", 4, "sl_onesite needs a model of at most 2 values at each site; pairs has num_categories = 4"),
        ("sl_sldiscs_gwg", 128, "sl_sldiscs_gwg needs a model of at most 127 values"),
        ("sl_sldiscs_gibbs", 4, "sl_sldiscs_gibbs needs exact gains, which gradients of pairs are not"),
        ("sldiscs_gwg", 1, "model_config.num_categories is 1; expected at least 2"),
    ],
)
def test_samplers_that_do_not_take_the_models_values(standin, name, count, message):
    module = importlib.import_module(f"discs.samplers.{name}")
    with pytest.raises(InputError, match=message):
        module.build_sampler(whole_config(name, num_categories=count))


@pytest.mark.parametrize(("name", "count"), [("sl_ball", 200), ("sl_sldiscs_path_auxiliary", 127)])
def test_samplers_that_take_them(standin, name, count):
    module = importlib.import_module(f"discs.samplers.{name}")
    state = module.build_sampler(whole_config(name, num_categories=count)).make_init_state(jax.random.PRNGKey(0))
    assert state["chains"].y.shape == (8, 5, count)


def test_impossible_fields(standin):
    module = importlib.import_module("discs.samplers.sl_onesite")
    config = whole_config("sl_onesite")
    config.sampler.sigma = -1.0
    with pytest.raises(InputError, match=r"sampler_config.sigma is -1.0"):
        module.build_sampler(config)
    config = whole_config("sl_onesite")
    config.experiment.chain_length = 10
    with pytest.raises(InputError, match="exceed chain_length = 10"):
        module.build_sampler(config)


def test_no_discs(no_discs):
    with pytest.raises(InputError, match="discs is not importable; clone"):
        discs_plugin.register()


@pytest.mark.parametrize("folder", ["discs", "discs/samplers/abstractsampler"])
def test_another_package_of_that_name(no_discs, tmp_path, put_first, folder):
    """Also one with a folder where DISCS has a module."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "discs" / "__init__.py").touch()
    put_first(tmp_path)
    with pytest.raises(InputError, match=r"has no module discs\.samplers\.abstractsampler"):
        discs_plugin.register(compat=True)


def test_another_calling_convention(standin, monkeypatch):
    abstract = importlib.import_module("discs.samplers.abstractsampler").AbstractSampler
    monkeypatch.setattr(abstract, "step", lambda self, x: x)
    with pytest.raises(InputError, match=r"AbstractSampler.step takes \['x'\], expected \['model', 'rng'"):
        discs_plugin.register(compat=True)


def test_compat_comes_before_discs(no_discs, monkeypatch):
    monkeypatch.setitem(sys.modules, "discs.samplers", sys)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: True)
    with pytest.raises(InputError, match=r"discs\.samplers was imported already"):
        discs_plugin.register(compat=True)


def test_unknown_fix(standin):
    with pytest.raises(InputError, match="unknown fix 'maks'; known: chain_scale"):
        discs_plugin.register(compat=True, fixes=["maks"])
