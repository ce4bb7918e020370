"""All fields of `dlmc` with their defaults: DLMC of DISCS."""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
    """Returns the config of `dlmc`."""
    return config_dict.ConfigDict(
        {
            "name": "dlmc",
            "solver": "interpolate",
            "adaptive": True,
            "step_size": 0.2,
            "n": 3.0,
            "target_acceptance_rate": 0.574,
            "adapt_until": config_dict.placeholder(int),
            "adjusted": True,
            "balancing_fn_type": "SQRT",
            "co_opt_prob": True,
        }
    )
