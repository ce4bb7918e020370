"""A config file for `--sampler_config=FILE:SOURCE`: the config of an importable module or of another file.

A file of its own, since ml_collections runs the file, which must therefore import nothing heavy.
"""

import importlib
import runpy

from ml_collections import config_dict


def get_config(source: str) -> config_dict.ConfigDict:
    """Returns `get_config()` of a module; of a file, with the fields of localization that an `sl_` config lacks.

    A config copied from DISCS thus needs no more than the name `sl_...`.
    """
    if not source.endswith(".py"):
        return importlib.import_module(source).get_config()
    config = runpy.run_path(source)["get_config"]()
    if str(config.get("name", "")).startswith("sl_"):
        from sl_discs.localization.schedule import Localization

        with config.unlocked():
            config.update({name: value for name, value in vars(Localization()).items() if name not in config})
    return config
