"""A short run of the engine `cuda` on one warp and on two, for compute-sanitizer; run by
run_scripts/gpu_check.sh.
"""

import numpy as np

from sl_discs.experiment.run_sampler import plan_of, run_sampler
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import load_dataset
from sl_discs.localization.method import build_method

SETTINGS = Settings(batch_size=4, chain_length=40, log_every_steps=20, engine="cuda")
for cfg_str in ("r-er-0.15-n-256-300", "r-er-0.15-n-1024-1100"):
    dataset = load_dataset("maxcut", "er", cfg_str, None, num_instances=1)
    for name in ("sl_gwg", "sl_path_auxiliary", "sl_dmala"):
        record = run_sampler(
            plan_of(dataset, 1.0001, build_method({"name": name, "K": 4}), SETTINGS)
        )
        print(cfg_str, name, np.round(record.instances[0].best))
