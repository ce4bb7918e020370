"""Config of pairs."""

from ml_collections import config_dict


def get_config():
    return config_dict.ConfigDict({"name": "pairs", "shape": (5,), "num_categories": 2, "save_dir_name": "pairs"})
