"""Experiment on the MIS Erdos-Renyi density sets (r-0.05, r-0.10, r-0.20, r-0.25).

DISCS's annealing with the paper's chain length: that of its sweep file;
its experiment config has a decay_rate of .005. docs/reproduction.md compares both.
"""

from ml_collections import config_dict

from sl_discs.experiment.settings import experiment_config


def get_config() -> config_dict.ConfigDict:
    """All fields of the experiment; those not named here have their defaults."""
    return experiment_config(
        "mis/er_density/r-0.10",
        batch_size=32,
        t_schedule="exp_decay",
        chain_length=10_000,
        log_every_steps=100,
        init_temperature=1.0,
        decay_rate=0.05,
        final_temperature=0.0001,
    )
