"""DISCS's experiment on models that are not combinatorial: effective sample sizes of its samplers."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import math
import textwrap
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import yaml
from jaxtyping import Array, Float, Int, Int8, Int32, Num

from sl_discs.engines.base import Trace
from sl_discs.engines.registry import choose_engine
from sl_discs.errors import InputError, check_memory
from sl_discs.experiment.batches import shape_of_one
from sl_discs.experiment.chains import Chains, Progress, anneal, devices_for
from sl_discs.experiment.memory import batch_bytes
from sl_discs.experiment.progress import progress_bar
from sl_discs.experiment.record import device_in_words, versions
from sl_discs.experiment.results import plain
from sl_discs.experiment.run import check_methods
from sl_discs.experiment.settings import Settings
from sl_discs.experiment.summary import WIDTH, aligned, saved, wrapped
from sl_discs.files import write_json, write_text
from sl_discs.instances.generators import IsingLattice
from sl_discs.localization.method import Method
from sl_discs.models.terms import Coefficients
from sl_discs.problems.kind import KINDS

# The effective sample size that DISCS reports for Ising and similar models, for comparison with its figures.
#
# DISCS maps each state to its Hamming distance from a random state and computes the effective sample size of that
# trace. This measures how fast the chain moves along one random direction, not whether it has converged;
# `sl_discs.sampling` has its own diagnostics for that.


class DiscsEss(NamedTuple):
    """Means over chains, and the standard deviation over chains (divisor B) that DISCS saves, scaled, with each."""

    ess: float
    deviation: float
    per_step: float
    per_second: float
    # Of the log-likelihood or its gradient; gwg, dmala and dlmc count 4 a step.
    per_evaluation: float


def distances(states: Int8[np.ndarray, "T B N"], reference: Int8[np.ndarray, "N"]) -> Int[np.ndarray, "T B"]:
    """Hamming distances from one state, which DISCS draws uniformly from {0, 1}^N once a run."""
    return np.count_nonzero(np.asarray(states) != reference, axis=-1)


def discs_ess(
    trace: Num[np.ndarray, "T B"], seconds: float, evaluations: float, *, ess_ratio: float = 0.5
) -> DiscsEss:
    """The four figures of DISCS's `ess_eval`.

    The fraction `ess_ratio` of a chain's steps is discarded as burn-in. As in DISCS, the numbers of steps and of
    evaluations are also multiplied by `ess_ratio`, which is the fraction that remains only if it is 0.5. A chain
    whose trace never changes counts as one sample. `seconds` are those of the steps after burn-in, and `evaluations`
    those of one chain in all T steps, 0 if they are not counted. InputError if fewer than 2 steps are left.
    """
    length = len(trace)
    kept = np.asarray(trace, np.float32)[int(length * ess_ratio) :]
    if len(kept) < 2:
        raise InputError(f"a trace of {length} steps has {len(kept)} after burn-in; expected at least 2")
    # A constant trace is 0/0.
    sizes = np.nan_to_num(np.asarray(effective_sample_size(jnp.asarray(kept)), np.float64), nan=1.0)
    ess = float(sizes.mean())
    per_evaluation = ess / (evaluations * ess_ratio) if evaluations else float("nan")
    return DiscsEss(ess, float(sizes.std()), ess / (length * ess_ratio), ess / seconds, per_evaluation)


@jax.jit
def effective_sample_size(chain: Float[Array, "T B"]) -> Float[Array, "B"]:
    """T / (1 + 2 sum_k (1 - k/T) rho_k), the sum ending before the first negative autocorrelation.

    The definition of TensorFlow Probability's function with its defaults: rho_k divides by the T - k products that
    it averages.
    """
    length = chain.shape[0]
    centered = chain - jnp.mean(chain, axis=0)
    spectrum = jnp.fft.rfft(centered, n=2 * length, axis=0)
    products = jnp.fft.irfft(jnp.abs(spectrum) ** 2, n=2 * length, axis=0)[:length]
    lags = jnp.arange(length, dtype=chain.dtype)[:, None]
    correlation = products / (length - lags)
    correlation = correlation / correlation[0]
    positive = jnp.cumsum(correlation < 0, axis=0) == 0
    weighted = jnp.where(positive, (1 - lags / length) * correlation, 0.0)
    return length / (2 * jnp.sum(weighted, axis=0) - 1)


# Chains at one temperature, and their effective sample size as DISCS defines it.

# Largest size of the states of a call, in bytes.
_MOST_STATES = 2**26
# Bytes per step and chain: records and their copies, the distance, and temporaries of the effective sample size.
_RECORDED = 80


@dataclasses.dataclass(frozen=True)
class EssRecord:
    """The record of one sampler; all but `run_s` and `compile_s` refers to the chains after burn-in."""

    ess: DiscsEss
    acceptance: float
    hops: float
    seconds: float
    run_s: float
    compile_s: float
    engine: str


def ess_settings(settings: Settings, methods: list[Method]) -> Settings:
    """Settings that record every step.

    InputError for chains that are not stationary (a localized sampler, a temperature that changes, or resampling),
    for too few steps, and for fields of experiments on graphs.
    """
    for method in methods:
        if method.localization is not None:
            raise InputError(
                f"sampler {method.name!r} has no effective sample size: the target of a localized chain changes all "
                "the time, and it ends in one draw; leave it out, or draw with sl_discs.sample(method='localization')"
            )
    if settings.t_schedule != "constant":
        raise InputError(
            f"config.experiment.t_schedule is {settings.t_schedule!r}; an effective sample size needs 'constant'"
        )
    if settings.resample_every:
        raise InputError(
            f"config.experiment.resample_every is {settings.resample_every}; an effective sample size needs "
            "independent chains: give 0"
        )
    if settings.chain_length - _burn_in(settings) < 2:
        raise InputError(
            f"config.experiment.chain_length is {settings.chain_length}, of which ess_ratio = {settings.ess_ratio} "
            "leaves fewer than 2 steps; run longer"
        )
    check_methods(methods, settings)
    if settings.num_instances not in (None, 1):
        raise InputError(
            f"config.experiment.num_instances is {settings.num_instances}; one lattice is run, number "
            "config.experiment.first_instance"
        )
    return dataclasses.replace(settings, log_every_steps=1)


def play_chains(terms: Coefficients, method: Method, settings: Settings, progress: Progress) -> EssRecord:
    """Runs the chains of one sampler with the settings of `ess_settings`, and records every step.

    `progress` is called with the number of chain-steps done. InputError where the records do not fit into memory.
    """
    sampler = method.sampler
    engine, note = choose_engine(settings.engine, sampler)
    shape = shape_of_one(terms, settings.batch_size, *devices_for(engine, sampler, settings))
    # Without padding, which DISCS's samplers would move as well: they know nothing of a mask.
    shape = dataclasses.replace(shape, num_sites=terms.num_sites)
    steps = max(1, _MOST_STATES // (shape.num_instances * shape.num_chains * shape.num_sites))
    check_memory(
        f"{settings.batch_size} chains of {settings.chain_length} steps and {len(terms.linear)} sites",
        batch_bytes(shape, 0, engine.name) + settings.batch_size * settings.chain_length * _RECORDED,
        "give fewer or shorter chains (config.experiment.batch_size, chain_length)",
    )
    chains = Chains.of_one(terms, settings.first_instance, shape, sampler, engine, settings.seed, settings.threads)
    recorder = _Distances(_reference(settings.seed, len(terms.linear)), settings)
    outcome = anneal(
        chains,
        method,
        settings,
        lambda steps: progress(steps * settings.batch_size),
        recorder=recorder,
        keeps_states=True,
        steps_per_call=min(steps, engine.steps_per_call(sampler)),
    )
    kept = outcome.trace.acceptance[_burn_in(settings) :, 0], outcome.trace.hops[_burn_in(settings) :, 0]
    acceptance, hops = (float(leaf.mean(dtype=np.float64)) for leaf in kept)
    return EssRecord(
        ess=discs_ess(recorder.trace, recorder.seconds, recorder.evaluations, ess_ratio=settings.ess_ratio),
        acceptance=acceptance,
        hops=hops,
        seconds=recorder.seconds,
        run_s=chains.run_s,
        compile_s=chains.compile_s,
        engine=engine.name + (f" ({note})" if note else ""),
    )


def _burn_in(settings: Settings) -> int:
    """Number of discarded steps."""
    return int(settings.chain_length * settings.ess_ratio)


def _reference(seed: int, size: int) -> Int8[np.ndarray, "N"]:
    """The state from which distances are taken, the same for all samplers of a run."""
    key = np.random.SeedSequence([seed, zlib.crc32(b"effective sample size")])
    return np.random.default_rng(key).integers(2, size=size, dtype=np.int8)


class _Distances:
    """Computes the distance of every state during the run, so that states need not be kept.

    `seconds` are those of the steps after burn-in, and `evaluations` those of the log-likelihood by a chain so far, 0
    if the sampler's state does not count them.
    """

    def __init__(self, reference: Int8[np.ndarray, "N"], settings: Settings):
        self._reference, self._burn_in = reference, _burn_in(settings)
        self.trace: Int32[np.ndarray, "T B"] = np.zeros((settings.chain_length, settings.batch_size), np.int32)
        self.seconds, self.evaluations = 0.0, 0

    def __call__(self, every: int, trace: Trace, chains: Chains, seconds: float | None) -> None:
        stop = chains.done
        first = stop - len(trace.value) * every
        states = np.asarray(trace.states)[:, 0, : self.trace.shape[1], : len(self._reference)]
        self.trace[first:stop] = distances(states, self._reference)
        self.seconds += (seconds or 0.0) * max(0, stop - max(first, self._burn_in)) / (stop - first)
        state = chains.states.chain.state
        counted = state.get("num_ll_calls") if isinstance(state, dict) else getattr(state, "num_ll_calls", None)
        self.evaluations = 0 if counted is None else int(np.asarray(counted)[0, 0])


# Fields of DISCS's model config that have no meaning here, or that are the same for every Ising lattice.
_NAMES = ("name", "save_dir_name")
_DISCS_ONLY = {"num_categories": 2, "external_field_type": 1}


@dataclasses.dataclass(frozen=True)
class EssExperiment:
    """One command's result: several samplers on a lattice drawn from the same distribution."""

    lattice: IsingLattice
    config: dict
    settings: Settings
    device: str
    versions: dict[str, str]
    samplers: dict[str, EssRecord]


def lattice_from(fields: Mapping[str, Any]) -> IsingLattice:
    """The lattice of a model config; InputError for a field or value that does not fit one, such as one of graphs."""
    known = [field.name for field in dataclasses.fields(IsingLattice)]
    for name, value in fields.items():
        if name in _DISCS_ONLY and value != _DISCS_ONLY[name]:
            raise InputError(f"model_config.{name} is {value!r}; an Ising lattice has {_DISCS_ONLY[name]}")
        if name not in (*_NAMES, *_DISCS_ONLY, *known):
            raise InputError(f"model_config of 'ising' has no field {name!r}; known: {', '.join((*_NAMES, *known))}")
    given = {name: value for name, value in fields.items() if name in known}
    if isinstance(given.get("shape"), list):
        given["shape"] = tuple(given["shape"])
    return IsingLattice(**given)


def run_ess(lattice: IsingLattice, methods: list[Method], settings: Settings, config: dict) -> EssExperiment:
    """Runs every method on the same lattice, with the settings of `ess_settings`; `config` is to be saved."""
    form = lattice.draw(settings.data_seed, settings.first_instance)
    terms = KINDS["ising"].terms(form)
    records = {}
    with progress_bar(settings.chain_length * settings.batch_size) as progress:
        for method in methods:
            report = functools.partial(progress, method.name)
            records[method.name] = play_chains(terms, method, settings, report)
    return EssExperiment(lattice, config, settings, device_in_words(), versions(), records)


# Effective sample sizes of an experiment: a table, and files.
#
# | file | content |
# |---|---|
# | `results.csv` | what DISCS saves, one file a sampler; of several samplers in `<sampler>/results.csv` |
# | `config.yaml` | the configuration |
# | `results.json` | numbers for programs, strict JSON; written last, so its presence means a complete folder |

# DISCS's names of the figures.
_COLUMNS = {"ESS": "ess", "ESS_M-H": "per_step", "ESS_T": "per_second", "ESS_EE": "per_evaluation"}
_TITLE = (
    "Effective sample size as DISCS takes it: of the distance to a random state, after burn-in, mean over chains +- "
    "standard error. ESS_M-H: a step. ESS_T: a second. ESS_EE: a call of the log-likelihood, as DISCS counts calls."
)


def write_ess(experiment: EssExperiment, folder: Path) -> dict[str, Path]:
    """Writes every file, each atomically, and returns file name -> path; InputError if that fails."""
    paths = {}
    for name, record in experiment.samplers.items():
        relative = "results.csv" if len(experiment.samplers) == 1 else f"{name}/results.csv"
        paths[relative] = write_text(folder / relative, _csv_of(experiment, name, record))
    config = yaml.safe_dump(plain(experiment.config), sort_keys=False)
    paths["config.yaml"] = write_text(folder / "config.yaml", config)
    paths["results.json"] = write_json(folder / "results.json", ess_dict(experiment), indent=2, allow_nan=False)
    return paths


def ess_dict(experiment: EssExperiment) -> dict[str, Any]:
    """The content of `results.json`: builtin types only, None for what is not finite."""
    samplers = {
        name: {column: getattr(record.ess, field) for column, field in _COLUMNS.items()}
        | {"deviation": record.ess.deviation}
        | {field: getattr(record, field) for field in vars(record) if field != "ess"}
        for name, record in experiment.samplers.items()
    }
    about = {name: getattr(experiment, name) for name in ("config", "versions", "device")}
    return plain({"dataset": experiment.lattice.name, **about, "samplers": samplers})


def format_ess(experiment: EssExperiment, paths: dict[str, Path]) -> str:
    """The run, one row per sampler, and the paths of the files."""
    settings = experiment.settings
    chains = (
        f"{settings.batch_size:,} of {settings.chain_length:,} steps each at temperature "
        f"{settings.init_temperature:g}, seed {settings.seed}; the first {settings.ess_ratio:.0%} are left out"
    )
    lattice = experiment.lattice
    drawn = (
        f"open, lambdaa {lattice.lambdaa:g}, mu {lattice.mu:g}, init_sigma {lattice.init_sigma:g}; number "
        f"{settings.first_instance} of data_seed {settings.data_seed}"
    )
    engines = "; ".join(dict.fromkeys(record.engine for record in experiment.samplers.values()))
    header = [
        f"{lattice.name}: Ising model",
        *wrapped("lattice", drawn),
        *wrapped("chains", chains),
        *wrapped("ran on", f"{experiment.device}, engine {engines}"),
    ]
    rows = [["sampler", *_COLUMNS, "acceptance", "hops a step", "seconds"]]
    rows += [_row(name, record, settings.batch_size) for name, record in experiment.samplers.items()]
    blocks = [header, [*textwrap.wrap(_TITLE, WIDTH), *aligned(rows)], saved(paths)]
    return "\n\n".join("\n".join(block) for block in blocks)


def _row(name: str, record: EssRecord, num_chains: int) -> list[str]:
    values = (getattr(record.ess, field) for field in _COLUMNS.values())
    figures = ["-" if math.isnan(value) else f"{value:.4g}" for value in values]
    if num_chains > 1:
        figures[0] += f" +- {record.ess.deviation / math.sqrt(num_chains - 1):.3g}"
    return [name, *figures, f"{record.acceptance:.3f}", f"{record.hops:.2f}", f"{record.seconds:.2f}"]


def _csv_of(experiment: EssExperiment, name: str, record: EssRecord) -> str:
    """DISCS's header and row, where each figure is given with its deviation over chains: `[21.9 10.5]`."""
    settings = experiment.settings
    row = {
        "sampler": _discs_name(name, experiment.config["samplers"][name]),
        "model": "ising",
        "num_categories": 2,
        "shape": experiment.lattice.shape,
        "batch_size": settings.batch_size,
        "chain_length": settings.chain_length,
        "ess_ratio": settings.ess_ratio,
        "Time": record.seconds,
    }
    both = np.array([record.ess.ess, record.ess.deviation], np.float32)
    row |= {
        column: str(both * np.float32(getattr(record.ess, field) / record.ess.ess))
        for column, field in _COLUMNS.items()
    }
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(row))
    writer.writeheader()
    writer.writerow(row)
    return file.getvalue()


def _discs_name(name: str, fields: dict[str, Any]) -> str:
    """DISCS's name for a sampler in its files, such as `a_gwg(sqrt)`, which its plotting scripts look for."""
    adaptive = "a_" if "adaptive" in fields else ""
    balancing = fields.get("balancing_fn_type")
    return f"{adaptive}{name}" + (f"({balancing.lower()})" if balancing else "")
