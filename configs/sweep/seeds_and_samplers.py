"""Four samplers, three seeds: 12 runs of a minute at most, on two small MaxCut instances.

A file of DISCS's form: every combination of a dictionary's values is a run.
"""

from ml_collections import config_dict


def get_config() -> config_dict.ConfigDict:
    """Model, graph type, the sampler of runs that name none, and the runs."""
    return config_dict.ConfigDict(
        {
            "model": "maxcut",
            "graph_type": "ba",
            "sampler": "path_auxiliary",
            "sweep": [
                {
                    "sampler_config.name": ["gwg", "path_auxiliary"],
                    "config.experiment.seed": [0, 1, 2],
                    "model_config.cfg_str": ["r-ba-4-n-64-75"],
                    "config.experiment.num_instances": [2],
                    "config.experiment.batch_size": [8],
                    "config.experiment.chain_length": [2000],
                },
                {
                    "sampler_config.name": ["sl_gwg", "sl_path_auxiliary"],
                    "sampler_config.K": [64],
                    "config.experiment.seed": [0, 1, 2],
                    "model_config.cfg_str": ["r-ba-4-n-64-75"],
                    "config.experiment.num_instances": [2],
                    "config.experiment.batch_size": [8],
                    "config.experiment.chain_length": [2000],
                },
            ],
        }
    )
