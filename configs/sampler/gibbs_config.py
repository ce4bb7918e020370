"""All fields of `gibbs` with their defaults: Gibbs sampling."""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
    """Returns the config of `gibbs`."""
    return config_dict.ConfigDict(
        {
            "name": "gibbs",
            "scan": "random",
        }
    )
