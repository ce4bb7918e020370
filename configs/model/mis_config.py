"""Model config of maximum independent set; graph_type and cfg_str choose the dataset, as in DISCS."""

from ml_collections import config_dict

from sl_discs.problems.kind import PENALTY


def get_config() -> config_dict.ConfigDict:
    """Problem and dataset; data_root is searched for DISCS's files, then for an archive.

    Where no data_root is named, ./sco is searched if there is such a folder.
    """
    return config_dict.ConfigDict(
        {
            "name": "mis",
            "graph_type": "er_density",
            "cfg_str": "r-0.10",
            "data_root": config_dict.placeholder(str),
            "save_dir_name": "mis",
            "penalty": PENALTY,
        }
    )
