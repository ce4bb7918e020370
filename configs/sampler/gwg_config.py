"""All fields of `gwg` with their defaults: Gibbs with gradients."""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
    """Returns the config of `gwg`."""
    return config_dict.ConfigDict(
        {
            "name": "gwg",
            "num_flips": 1,
            "adaptive": True,
            "target_acceptance_rate": 0.574,
            "adapt_until": config_dict.placeholder(int),
            "shared_adaptation": False,
            "balancing_fn_type": "SQRT",
        }
    )
