"""Experiment on the MaxCut Barabasi-Albert sets (r-ba-4-n-256-300, -512-600, -1024-1100).

DISCS's annealing with the paper's chain length.
"""

from ml_collections import config_dict

from sl_discs.experiment.settings import experiment_config


def get_config() -> config_dict.ConfigDict:
    """All fields of the experiment; those not named here have their defaults."""
    return experiment_config(
        "maxcut/ba/r-ba-4-n-512-600",
        batch_size=32,
        t_schedule="exp_decay",
        chain_length=10_000,
        log_every_steps=100,
        init_temperature=1.0,
        decay_rate=0.1,
        final_temperature=1e-06,
    )
