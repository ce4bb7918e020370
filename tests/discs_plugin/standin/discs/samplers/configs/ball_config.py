"""Config of ball."""

from ml_collections import config_dict


def get_config():
    return config_dict.ConfigDict({"name": "ball", "patience": 3})
