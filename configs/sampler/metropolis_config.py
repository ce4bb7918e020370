"""All fields of `metropolis` with their defaults: single-site Metropolis."""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
    """Returns the config of `metropolis`."""
    return config_dict.ConfigDict(
        {
            "name": "metropolis",
            "scan": "random",
        }
    )
