"""All fields of `exchange` with their defaults: exchanges of two sites."""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
    """Returns the config of `exchange`."""
    return config_dict.ConfigDict(
        {
            "name": "exchange",
            "single": 0.5,
        }
    )
