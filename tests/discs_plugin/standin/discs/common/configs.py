"""The base config."""

from ml_collections import config_dict


def get_config():
    experiment = {
        "name": "Experiment",
        "evaluator": "ess_eval",
        "num_models": 1,
        "batch_size": 8,
        "chain_length": 1100,
        "run_parallel": True,
        "save_root": "./discs/results",
        "co_opt_prob": False,
    }
    return config_dict.ConfigDict(
        {"model": {"name": "", "data_root": ""}, "sampler": {"name": ""}, "experiment": experiment}
    )
