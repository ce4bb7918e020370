"""Sampler config of any sampler of your own: --import=FILE.py --sampler_config=configs/sampler/own_config.py:NAME."""

from ml_collections import config_dict

from sl_discs.localization.method import method_config


def get_config(name: str) -> config_dict.ConfigDict:
    """All fields of a registered sampler, or of its `sl_` variant, with their defaults."""
    return method_config(name)
