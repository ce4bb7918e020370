"""Model config of DISCS's Ising lattice; lambdaa is spelt as in DISCS."""

import dataclasses

from ml_collections import config_dict

from sl_discs.instances.generators import IsingLattice


def get_config() -> config_dict.ConfigDict:
    """A lattice at high temperature, for which DISCS measures effective sample sizes."""
    fields = dataclasses.asdict(IsingLattice(shape=(50, 50), lambdaa=0.5, mu=0.5, init_sigma=1.5))
    return config_dict.ConfigDict({"name": "ising", **fields, "save_dir_name": "ising_hightemp"})
