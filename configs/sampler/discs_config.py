"""Sampler config of any sampler of DISCS: --sampler_config=configs/sampler/discs_config.py:discs:dlmc.

Needs a checkout of DISCS on PYTHONPATH.
"""

from ml_collections import config_dict

from sl_discs.discs_plugin.upstream import borrow_samplers
from sl_discs.localization.method import method_config


def get_config(name: str) -> config_dict.ConfigDict:
    """All fields of `discs:NAME` or `sl:discs:NAME` with their defaults."""
    borrow_samplers()
    return method_config(name)
