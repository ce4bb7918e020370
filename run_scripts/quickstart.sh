#!/usr/bin/env bash
# From a fresh clone to results, in about a minute: a cut solved and proved, draws with a verdict, PAS and SL-PAS beside
# the numbers of the paper, and two modes drawn by low-rank localization.
# Further arguments are passed on to the third step, such as --config.experiment.num_instances=8.
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
step "3. PAS and SL-PAS (path auxiliary sampling, and the same localized) at their defaults on the paper's set ER-0.25: 32
   graphs, 32 chains of 10,000 steps each. 'published' is the paper, and se the error of our mean" run \
  --config=configs/experiment/mis/er_density.py \
  --model_config=configs/model/mis_config.py \
  --model_config.graph_type=er_density \
  --model_config.cfg_str=r-0.25 \
  --samplers=path_auxiliary,sl_path_auxiliary \
  --config.experiment.save_root=results/quickstart \
  --overwrite \
  "$@"

printf '\n== %s\n$ %s\n\n' "4. Two modes: chains stay in the one where they begin, and low-rank localization draws both" \
  "python examples/two_modes.py results/two_modes.png"
.venv/bin/python examples/two_modes.py results/two_modes.png

cat <<'END'

== Next
source .venv/bin/activate      makes sl-discs and Python with sl_discs available in this shell
results/two_modes.png          the picture of step 4
docs/own_problem.md            a graph, QUBO or Ising model of your own
docs/reproduction.md           the other rows of the paper's Table 1
docs/discs.md                  the samplers in a checkout of DISCS
END
