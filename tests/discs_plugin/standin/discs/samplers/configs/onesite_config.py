"""Config of onesite."""

from ml_collections import config_dict


def get_config():
    return config_dict.ConfigDict({"name": "onesite", "patience": 3})
