"""A comparison as in DISCS.

DISCS compares samplers on the same graphs with the same annealing, by the best chain of each graph.
`sl-discs run` performs such an experiment with DISCS's configs, datasets and flags, and compares
its means with the published ones. Here path auxiliary sampling and its localized variant look for
independent sets in eight random graphs of 700 to 800 nodes, with 16 chains of 2,000 steps each.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = [
    *(
        "run",
        "--config=configs/experiment/mis/er_density.py",
        "--model_config=configs/model/mis_config.py",
    ),
    *("--model_config.graph_type=er_density", "--model_config.cfg_str=r-0.10"),
    *("--samplers=path_auxiliary,sl_path_auxiliary", "--config.experiment.num_instances=8"),
    *("--config.experiment.batch_size=16", "--config.experiment.chain_length=2000"),
]


def main(path: str) -> None:
    """Runs the experiment, prints its summary, and keeps its figure."""
    with tempfile.TemporaryDirectory() as folder:
        options = [f"--config.experiment.save_root={folder}"]
        done = subprocess.run(
            [sys.executable, "-m", "sl_discs", *COMMAND, *options],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        summary, _, _ = done.stdout.partition("\nsaved in ")
        print(" \\\n    ".join([f"sl-discs {COMMAND[0]}", *COMMAND[1:]]), end="\n\n")
        print(summary)
        (figure,) = Path(folder).rglob("trajectory.png")
        shutil.copy(figure, path)


if __name__ == "__main__":
    main(sys.argv[1])
