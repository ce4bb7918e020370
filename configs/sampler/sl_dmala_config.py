"""All fields of `sl_dmala` with their defaults: discrete Langevin proposals, with stochastic
localization.
"""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
    """Returns the config of `sl_dmala`."""
    return config_dict.ConfigDict(
        {
            "name": "sl_dmala",
            "adaptive": True,
            "step_size": 0.2,
            "expected_flips": 3.0,
            "target_acceptance_rate": 0.574,
            "adapt_until": config_dict.placeholder(int),
            "shared_scale": False,
            "adjusted": True,
            "balancing_fn_type": "SQRT",
            "co_opt_prob": True,
            # Localization.
            "alpha": "geom(2,1)",
            "grid": "uniform",
            "budget": "exp_decay",
            "integrator": "exponential",
            "K": 256,
            "sigma": 10.0,
            "eps": 0.01,
            "eps_end": 0.01,
            "horizon": 1.0,
            "mc_ratio": 0.5,
            "r": 0.1,
            "n_min": 4,
            "tilt": True,
            "anneal": "run",
        }
    )
