"""All fields of `dmala` with their defaults: discrete Langevin proposals."""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
    """Returns the config of `dmala`."""
    return config_dict.ConfigDict(
        {
            "name": "dmala",
            "adaptive": True,
            "step_size": 0.2,
            "expected_flips": 3.0,
            "target_acceptance_rate": 0.574,
            "adapt_until": config_dict.placeholder(int),
            "shared_scale": False,
            "adjusted": True,
            "balancing_fn_type": "SQRT",
            "co_opt_prob": True,
        }
    )
