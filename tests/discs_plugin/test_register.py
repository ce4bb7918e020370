"""Registration: names, repetition, and what is refused."""

import importlib
import sys

import pytest

from sl_discs import discs_plugin
from sl_discs.discs_plugin import modules
from sl_discs.support.errors import InputError


def whole_config(name, **model):
    config = importlib.import_module("discs.common.configs").get_config()
    config.sampler.update(
        importlib.import_module(f"discs.samplers.configs.{name}_config").get_config()
    )
    config.model.update({"name": "bernoulli", "shape": (5,), "num_categories": 2} | model)
    return config


def built(name, config):
    return importlib.import_module(f"discs.samplers.{name}").build_sampler(config)


def test_names_are_importable_and_configs_complete(discs):
    before = {path: path.read_bytes() for path in discs.rglob("*.py")}
    names = modules.sampler_names()
    assert {"sl_gwg", "sl_hammingball", "sldiscs_gwg", "sl_sldiscs_gwg"} <= set(names)
    for name in names:
        config = importlib.import_module(f"discs.samplers.configs.{name}_config").get_config()
        assert config.name == name and ("sigma" in config) == name.startswith("sl_")
        assert hasattr(built(name, whole_config(name)), "step")
    assert modules.sampler_config("sl_hammingball").block_size == 10
    for module in ("discs.samplers.sl_nothing", "discs.samplers.sldiscs_nothing"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(module)
    assert {path: path.read_bytes() for path in discs.rglob("*.py")} == before


def test_registering_again_changes_nothing_but_the_fixes(discs):
    module = importlib.import_module("discs.samplers.sl_gwg")
    discs_plugin.register(compat=True, fixes=True)
    finders = [finder for finder in sys.meta_path if isinstance(finder, modules.PluginFinder)]
    assert len(finders) == 1 and finders[0].fixes
    assert importlib.import_module("discs.samplers.sl_gwg") is module


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("sl_locallybalanced", {"model.num_categories": 4}),
        ("sl_sldiscs_gibbs", {"model.num_categories": 4}),
        ("sl_gwg", {"sampler.sigma": -1.0}),
        ("sl_gwg", {"experiment.chain_length": 10}),
    ],
)
def test_what_a_sampler_does_not_take_is_refused(discs, name, change):
    config = whole_config(name)
    config.update_from_flattened_dict(change)
    with pytest.raises(InputError):
        built(name, config)


def test_no_discs_and_another_package_of_that_name(no_discs, tmp_path):
    (tmp_path / "discs").mkdir()
    (tmp_path / "discs" / "__init__.py").touch()
    for folder in (None, tmp_path):
        sys.path[:0] = [str(folder)] if folder else []
        importlib.invalidate_caches()
        with pytest.raises(InputError):
            discs_plugin.register(compat=True)


def test_compat_comes_before_discs(discs, no_discs, monkeypatch):
    sys.path.insert(0, str(discs.parent))
    monkeypatch.setitem(sys.modules, "discs.samplers", sys)
    with pytest.raises(InputError):
        discs_plugin.register(compat=True)
