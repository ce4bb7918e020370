"""Sampler config of sl_dhams."""

from ml_collections import config_dict

from sl_discs.localization.method import method_config


def get_config() -> config_dict.ConfigDict:
    """All fields with their defaults."""
    return method_config("sl_dhams")
