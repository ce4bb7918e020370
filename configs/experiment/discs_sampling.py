"""Draws from DISCS's models (ising, potts, bernoulli, categorical, fhmm, rbm) with the number of
chains and steps of its sampling experiments, of which the first half is burn-in.
"""

from ml_collections import config_dict

from sl_discs.experiment.settings import experiment_config


def get_config() -> config_dict.ConfigDict:
    """All fields of the experiment; those not named here have their defaults."""
    return experiment_config(batch_size=100, chain_length=100_000, t_schedule="constant")
