"""Experiment on the MaxCut Erdos-Renyi sets (r-er-0.15-n-256-300, -512-600, -1024-1100).

DISCS's annealing with the paper's chain length.
"""

from ml_collections import config_dict

from sl_discs.experiment.settings import experiment_config


def get_config() -> config_dict.ConfigDict:
    """All fields of the experiment; those not named here have their defaults."""
    return experiment_config(
        "maxcut/er/r-er-0.15-n-256-300",
        batch_size=16,
        t_schedule="linear",
        chain_length=10_000,
        log_every_steps=100,
        init_temperature=1.0,
        decay_rate=0.1,
        final_temperature=0.5,
    )
