"""A config file for `--sampler_config=FILE:MODULE`: the config of any importable module, such as the plugin's own.

A file of its own, since ml_collections runs the file, which must therefore import nothing heavy.
"""

import importlib

from ml_collections import config_dict


def get_config(module: str) -> config_dict.ConfigDict:
    """`get_config()` of a module."""
    return importlib.import_module(module).get_config()
