#!/usr/bin/env bash
# Measures anew what docs/measured holds, and writes the tables of the pages:
#
#   bash benchmarks/measure.sh cpu|gpu [NAME,...]
#
# With names, only these of docs/measured/NAME.json.
#
# cpu: three hours on two idle cores, in the order below, with the packages of the extras run, peers and study, and with
# FOLDER as DATA_ROOT, DISCS's files, for the last; DISCS on PYTHONPATH, or its column stays out.
# gpu: 12 minutes of an NVIDIA GPU, with the extra cuda12 or cuda13. A figure that was measured at the commit that is
# checked out is kept, so that a stopped command continues. `python docs/tables.py --check` lists what is out of date.
set -euo pipefail
cd "$(dirname "$0")/.."
only="${2:-}"
python="${PYTHON:-.venv/bin/python}"
kept="results/measure"
mkdir -p "$kept"
for name in ${only//,/ }; do
  if ("$python" docs/tables.py --check="$name" 2>&1 || true) | grep "^error:" >&2; then exit 2; fi
done

# measure NAME MINUTES FILE COMMAND...: FILE is what the command saves, of which docs/measured/NAME.json is a copy.
measure() {
  local name="$1" minutes="$2" file="$3"
  shift 3
  if [ -n "$only" ] && [[ ",$only," != *",$name,"* ]]; then
    return
  fi
  if "$python" docs/tables.py --check="$name" >/dev/null 2>&1; then
    echo "$name: measured at this commit"
    return
  fi
  echo "$name, about $minutes minutes: $*"
  "$@"
  cp "$file" "docs/measured/$name.json"
}
one_core() { if command -v taskset >/dev/null; then taskset -c 0 "$@"; else "$@"; fi; }

cases=mis-er-0.05,mis-er-0.25,maxcut-ba-512,maxcut-er-256
case "${1:-}" in
  cpu)
    measure updates 1 "$kept/updates.json" one_core "$python" benchmarks/updates.py --output="$kept/updates.json"
    measure localization 2 "$kept/localization.json" "$python" benchmarks/localization.py --cases="$cases" \
      --engines=cpu --processes=2 --seconds=7 --output="$kept/localization.json"
    measure networkx 3 "$kept/networkx.json" one_core "$python" benchmarks/networkx_functions.py \
      --output="$kept/networkx.json"
    measure covers 1 "$kept/covers.json" one_core "$python" benchmarks/covers.py \
      --cases=mis-steiner-81,mis-random-3000 --seconds=5 --output="$kept/covers.json"
    measure answers 6 "$kept/answers.json" one_core "$python" benchmarks/answers.py --output="$kept/answers.json"
    measure sets 3 "$kept/sets.json" "$python" benchmarks/rates.py \
      --cases=mis-er-0.05,mis-er-0.10,mis-er-0.20,mis-er-0.25,mis-satlib-like,maxclique-rb,maxcut-er-256,maxcut-ba-512,maxcut-ba-1024 \
      --samplers=path_auxiliary --engines=cpu --graphs=2 --repeats=1 --output="$kept/sets.json"
    if "$python" -c "import discs.samplers" 2>/dev/null; then
      measure overhead 3 "$kept/overhead.json" "$python" benchmarks/discs_overhead.py --density=0.05 --repeats=11 \
        --samplers=gwg,path_auxiliary,dmala,dlmc,randomwalk --output="$kept/overhead.json"
    else
      echo "overhead: left out, as no checkout of DISCS is on PYTHONPATH"
    fi
    if "$python" -c "import discs.samplers, flax" 2>/dev/null; then
      measure discs-sampling 6 "$kept/discs-sampling/discs_sampling.json" one_core "$python" studies/discs_sampling.py \
        --chains=64 --steps=16000 --output="$kept/discs-sampling"
    else
      echo "discs-sampling: left out, as no checkout of DISCS is on PYTHONPATH, or flax is missing"
    fi
    measure by-hand 6 "$kept/by-hand.json" one_core "$python" benchmarks/sampling.py --methods=chain,auto --engines=cpu \
      --peers=numpy,numba-gibbs,numba-tempering,numba-wolff,auxiliary-field --by_errors --repeats=10 --chains=16 --draws=62 \
      --targets=machine,cubic-glass,triangular,cubic-lattice,mean-field --output="$kept/by-hand.json"
    measure critical 3 "$kept/critical.json" one_core "$python" benchmarks/sampling.py --methods=sweeps,chain \
      --engines=cpu --peers=numpy --targets=ising-critical --chains=16 --draws=1000 --repeats=2 \
      --output="$kept/critical.json"
    measure sampling 8 "$kept/sampling.json" one_core "$python" benchmarks/sampling.py --methods=sweeps,chain \
      --engines=cpu --targets=ising-3,spin-glass,lattice-glass,mis-er --chains=16 --repeats=2 \
      --output="$kept/sampling.json"
    measure rates 15 "$kept/rates.json" "$python" benchmarks/rates.py --cases="$cases" \
      --samplers=gwg,path_auxiliary,dmala,sl_gwg,sl_path_auxiliary,sl_dmala --engines=reference,cpu,discs \
      --repeats=3 --output="$kept/rates.json"
    for seconds in 1 10; do
      name=solve graphs=8
      [ "$seconds" = 1 ] || { name=solve-10 && graphs=4; }
      measure "$name" $((20 + 5 * (seconds - 1))) "$kept/$name.json" one_core "$python" benchmarks/rates.py --samplers=default \
        --engines=cpu,dwave-samplers,kamis --graphs="$graphs" --chains=8 --repeats=1 --seconds="$seconds" \
        --output="$kept/$name.json"
    done
    measure theory 3 "$kept/theory/theory.json" one_core "$python" studies/theory.py --output="$kept/theory"
    measure convergence 3 "$kept/convergence/convergence.json" one_core "$python" studies/convergence.py \
      --output="$kept/convergence"
    measure samplers 10 "$kept/samplers/samplers.json" one_core "$python" studies/samplers.py \
      --samplers=metropolis,gibbs,gwg,path_auxiliary,dmala,exchange \
      --cases=mis-er-0.05,mis-satlib-like,maxcut-ba-512 --output="$kept/samplers"
    measure laws 20 "$kept/laws/laws.json" one_core "$python" studies/laws.py --profile=cpu --output="$kept/laws"
    measure verdicts 10 "$kept/verdicts/verdicts.json" one_core "$python" studies/verdicts.py --seeds=60 \
      --output="$kept/verdicts"
    measure tilt 15 "$kept/tilt/tilt.json" "$python" studies/claim/tilt.py --output="$kept/tilt"
    measure tilt-rb 15 "$kept/tilt-rb/tilt.json" "$python" studies/claim/tilt.py --datasets=maxclique/rb \
      --samplers=gwg_one_flip --graphs=512 --output="$kept/tilt-rb"
    if [ -n "${DATA_ROOT:-}" ]; then
      measure tilt-steps 5 "$kept/tilt-steps/tilt.json" "$python" studies/claim/tilt.py \
        --datasets=maxcut/optsicom/r-b --data_root="$DATA_ROOT" --graphs=10 --seeds=20 --output="$kept/tilt-steps"
    else
      echo "tilt-steps: left out, as DATA_ROOT names no folder of DISCS's files"
    fi
    ;;
  gpu)
    measure gpu 12 "$kept/gpu.json" "$python" benchmarks/rates.py --cases=mis-er-0.05,mis-er-0.25,maxcut-ba-512 \
      --samplers=gwg,path_auxiliary,dmala,sl_gwg,sl_path_auxiliary --engines=cuda,reference,discs --graphs=32 \
      --chains=32 --repeats=1 --output="$kept/gpu.json"
    ;;
  *)
    echo "usage: bash benchmarks/measure.sh cpu|gpu [NAME,...]" >&2
    exit 2
    ;;
esac
"$python" docs/tables.py
"$python" docs/tables.py --check || true
