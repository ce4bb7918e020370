"""Lets an unchanged DISCS run on current JAX; in DISCS itself this file is not needed."""

import importlib
import os

from sl_discs.discs_plugin import register
from sl_discs.discs_plugin.fixes import mend

register(compat=True)

if os.environ.get("SL_DISCS_MENDED"):
    for name in ("dmala", "gwg", "hammingball", "path_auxiliary"):
        module = importlib.import_module(f"discs.samplers.{name}")

        def build(config, name=name, make=module.build_sampler):
            sampler = make(config)
            mend(name, sampler)
            return sampler

        vars(module)["build_sampler"] = build
