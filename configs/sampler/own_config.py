"""The sampler config of every sampler by name: --sampler_config=configs/sampler/NAME_config.py is own_config.py:NAME.

NAME is one of the package, or one of your own after --import=FILE.py.
"""

from ml_collections import config_dict

from sl_discs.localization.method import method_config


def get_config(name: str) -> config_dict.ConfigDict:
    """All fields of a registered sampler, or of its `sl_` variant, with their defaults."""
    return method_config(name)
