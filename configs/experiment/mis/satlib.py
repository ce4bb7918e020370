"""Experiment on the SATLIB MIS set.

DISCS's annealing with the paper's chain length: that of its experiment config;
its sweep file has a decay_rate of .05. docs/reproduction.md compares both.
"""

from ml_collections import config_dict

from sl_discs.experiment.settings import experiment_config


def get_config() -> config_dict.ConfigDict:
    """All fields of the experiment; those not named here have their defaults."""
    return experiment_config(
        "mis/satlib/_",
        batch_size=32,
        t_schedule="exp_decay",
        chain_length=10_000,
        log_every_steps=100,
        init_temperature=1.0,
        decay_rate=0.005,
        final_temperature=1e-05,
    )
