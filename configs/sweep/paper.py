"""The 84 cells of the paper's tables of MIS, MaxClique and MaxCut: 14 sets and six samplers.

The sets that are not random must be given, with --data_root=FOLDER (`sl-discs discs files` says which are there).
"""

from ml_collections import config_dict

SETS = {
    ("mis", "er_density"): ["r-0.05", "r-0.10", "r-0.20", "r-0.25"],
    ("mis", "satlib"): ["_"],
    ("maxclique", "rb"): ["_"],
    ("maxclique", "twitter"): ["_"],
    ("maxcut", "er"): [f"r-er-0.15-n-{sizes}" for sizes in ("256-300", "512-600", "1024-1100")],
    ("maxcut", "ba"): [f"r-ba-4-n-{sizes}" for sizes in ("256-300", "512-600", "1024-1100")],
    ("maxcut", "optsicom"): ["r-b"],
}


def get_config() -> config_dict.ConfigDict:
    """A dictionary for each model and graph type, which a sweep may vary like any flag."""
    return config_dict.ConfigDict(
        {
            "model": "mis",
            "graph_type": "er_density",
            "sampler": "path_auxiliary",
            "sweep": [
                {
                    "model": [model],
                    "graph_type": [graph_type],
                    "model_config.cfg_str": cfg_strs,
                    "sampler_config.name": ["GWG", "SL-GWG", "PAS", "SL-PAS", "DMALA", "SL-DMALA"],
                }
                for (model, graph_type), cfg_strs in SETS.items()
            ],
        }
    )
