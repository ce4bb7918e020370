"""Model config of maximum independent set; graph_type and cfg_str choose the dataset, as in
DISCS.
"""

from ml_collections import config_dict

from sl_discs.problems.kind import PENALTY


def get_config() -> config_dict.ConfigDict:
    """Problem and dataset; graph_type and cfg_str are those of the experiment config unless given
    here.

    data_root is searched for DISCS's files, then for an archive; if none is named, ./sco if there
    is such a folder.
    """
    return config_dict.ConfigDict(
        {
            "name": "mis",
            "graph_type": config_dict.placeholder(str),
            "cfg_str": config_dict.placeholder(str),
            "data_root": config_dict.placeholder(str),
            "save_dir_name": "mis",
            "penalty": PENALTY,
        }
    )
