"""The config of any registered sampler by name, such as one of your own:
configs/sampler/own_config.py:mine.

It needs --import=FILE.py, which registers the sampler.
"""

from ml_collections import config_dict

from sl_discs.localization.method import method_config


def get_config(name: str) -> config_dict.ConfigDict:
    """All fields of a registered sampler, or of its `sl_` variant, with their defaults."""
    return method_config(name)
