"""Experiment on the Ising lattice: effective sample sizes of chains at temperature 1, with DISCS's settings."""

from ml_collections import config_dict

from sl_discs.experiment.settings import experiment_config


def get_config() -> config_dict.ConfigDict:
    """All fields of the experiment; those not named here have their defaults."""
    return experiment_config(
        batch_size=100,
        t_schedule="constant",
        chain_length=100_000,
        ess_ratio=0.5,
        log_every_steps=1,
        init_temperature=1.0,
    )
