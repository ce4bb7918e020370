"""The command, with DISCS's flags."""

import importlib
from pathlib import Path

from absl import flags
from ml_collections import config_flags

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
    Path(config.experiment.save_root).mkdir(parents=True, exist_ok=True)
    model = importlib.import_module(f"discs.models.{config.model.name}").build_model(config)
    sampler = importlib.import_module(f"discs.samplers.{config.sampler.name}").build_sampler(config)
    importlib.import_module("discs.experiment.sampling").Experiment(config).get_results(model, sampler)
