"""Config of nearby."""

from ml_collections import config_dict


def get_config():
    return config_dict.ConfigDict({"name": "nearby", "patience": 3})
