"""The config of any registered sampler by name, such as configs/sampler/own_config.py:sl_gwg.

One of your own needs --import=FILE.py, which registers it.
"""

from ml_collections import config_dict

from sl_discs.localization.method import method_config


def get_config(name: str) -> config_dict.ConfigDict:
    """All fields of a registered sampler, or of its `sl_` variant, with their defaults."""
    return method_config(name)
