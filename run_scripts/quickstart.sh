#!/usr/bin/env bash
# From a fresh clone to results, in about a minute: a cut solved and proved, draws with a verdict, and a sampler of the
# paper with and without stochastic localization on eight of its maximum-independent-set problems.
# Further arguments are passed on to the last step, such as --config.experiment.num_instances=32.
set -euo pipefail
cd "$(dirname "$0")/.."
EXTRAS=run source run_scripts/environment.sh

mkdir -p results
graph=results/quickstart.edges
.venv/bin/python -c '
import sys, networkx
networkx.write_edgelist(networkx.random_geometric_graph(60, 0.22, seed=4), sys.argv[1], data=False)' "$graph"

# Says what comes, prints the command, and runs it.
step() {
  printf '\n== %s\n$ sl-discs %s\n\n' "$1" "${*:2}"
  .venv/bin/python -m sl_discs "${@:2}"
}

step "1. The largest cut of a graph, with proof" solve "$graph" --problem=maxcut
step "2. Independent sets of this graph, drawn at a temperature; the last line is the verdict" \
  sample "$graph" --problem=mis --penalty=3 --temperature=0.4 --draws=2000 --plot=results/quickstart.png
step "3. Path auxiliary sampling with and without localization: 32 chains of 10,000 steps on each of eight graphs, at
   sigma=2, a tilt so strong that chains end in draws; it costs solutions, as docs/does_localization_help.md shows" run \
  --config=configs/experiment/mis/er_density.py \
  --config.experiment.num_instances=8 \
  --model_config=configs/model/mis_config.py \
  --model_config.graph_type=er_density \
  --model_config.cfg_str=r-0.10 \
  --samplers=path_auxiliary,sl_path_auxiliary \
  --sampler_config=configs/sampler/sl_path_auxiliary_config.py \
  --sampler_config.sigma=2 \
  --config.experiment.save_root=results/quickstart \
  --overwrite \
  "$@"

cat <<'END'

== Next
source .venv/bin/activate      makes sl-discs and Python with sl_discs available in this shell
docs/own_problem.md            a graph, QUBO or Ising model of your own
docs/experiments.md            the paper's experiments, with this project's runner
docs/discs.md                  the samplers in a checkout of DISCS
END
