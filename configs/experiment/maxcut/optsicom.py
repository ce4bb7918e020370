"""Experiment on the Optsicom toroidal grids.

DISCS's annealing with the paper's chain length.
"""

from ml_collections import config_dict

from sl_discs.experiment.settings import experiment_config


def get_config() -> config_dict.ConfigDict:
    """All fields of the experiment; those not named here have their defaults."""
    return experiment_config(
        "maxcut/optsicom/r-b",
        batch_size=32,
        t_schedule="exp_decay",
        chain_length=10_000,
        log_every_steps=100,
        init_temperature=1.0,
        decay_rate=0.05,
        final_temperature=0.001,
    )
