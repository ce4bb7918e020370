"""A whole experiment, from its configs to its record and files: `sl_discs.run`, and what the
command `run` calls.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax

from sl_discs.chains.chains import program_of
from sl_discs.chains.checkpoint import Checkpoints
from sl_discs.engines.choice import leave_cards_alone
from sl_discs.experiment.distributions import (
    DISTRIBUTIONS,
    load_distribution,
    settings_of_draws,
)
from sl_discs.experiment.parts import Part, join_records
from sl_discs.experiment.record import (
    ExperimentRecord,
    check_finished,
    describe_devices,
    run_identity,
    versions,
)
from sl_discs.experiment.results import write_results
from sl_discs.experiment.run_sampler import engine_for, plans_in_memory, run_sampler
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.experiment.summary import format_summary, plot_trajectories
from sl_discs.instances.dataset import PROBLEMS, default_data_root, graph_types, load_dataset
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import Method, build_method
from sl_discs.problems.kind import PENALTY
from sl_discs.samplers.registry import own_name
from sl_discs.support.checks import join_names, real, shown
from sl_discs.support.errors import InputError, import_extra
from sl_discs.support.files import check_writable
from sl_discs.support.signals import Notice
from sl_discs.support.terminal import progress_bar, tell

if TYPE_CHECKING:
    import pandas as pd

MODEL_FIELDS = {
    "name": f"{join_names(PROBLEMS)}; or a model of DISCS from which to draw, with DISCS's fields.",
    "graph_type": "dataset, as DISCS names it; left out: that of the experiment config.",
    "cfg_str": "configuration of the dataset, such as r-0.10; _ for none; left out: that of the "
    "experiment config.",
    "data_root": "folder searched for DISCS's files, then for an archive.",
    "penalty": "penalty of a conflict, where there are any, at least 1.",
    "save_dir_name": "folder of the results below ./results, with --run_local.",
}
# Fields of DISCS's model configs that are taken from the instances here.
_IGNORED_MODEL_FIELDS = {
    "max_num_nodes",
    "max_num_edges",
    "num_instances",
    "num_models",
    "num_categories",
    "shape",
    "rand_type",
}
# Those that name a set.
_SET_FIELDS = "name", "graph_type", "cfg_str"


class RunRequest(NamedTuple):
    """An experiment that can be run.

    Attributes:
      settings: chains, steps, annealing, instances.
      model: fields of the model config, complete.
      methods: the samplers.
      part: of the run.
    """

    settings: Settings
    model: dict[str, Any]
    methods: list[Method]
    part: Part = Part()

    def load(self) -> Dataset:
        """Returns this part's share of the instances."""
        settings = self.settings
        model = self.model
        part = self.part
        first = settings.first_instance
        count = settings.num_instances
        stride = settings.instance_stride
        if model["name"] in DISTRIBUTIONS:
            part.share(1)
            return load_distribution(model, settings.data_seed, self.methods)
        family = model["name"], model["graph_type"], model["cfg_str"], model["data_root"]
        load = functools.partial(load_dataset, *family, stride=stride, data_seed=settings.data_seed)
        if part.count == 1:
            return load(first=first, num_instances=count)
        if count is None:
            count = -(-(load(first=first, num_instances=1).total - first) // stride)
        else:
            # All parts fail alike if there are fewer instances.
            load(first=first + (count - 1) * stride, num_instances=1)
        share = part.share(count)
        return load(first=first + share.start * stride, num_instances=len(share))


def request_of(
    experiment: Mapping[str, Any],
    model: Mapping[str, Any],
    samplers: Mapping[str, Mapping[str, Any]],
    *,
    named: Mapping[str, Any],
    part: Part | None = None,
) -> RunRequest:
    """Returns what configs ask for.

    Args:
      experiment: fields of `Settings`.
      model: fields of the model config.
      samplers: fields of each sampler's config that differ from its defaults, by the sampler's own
        name.
      named: name, graph_type and cfg_str of the set that the experiment config is for, perhaps
        among other fields; without them it is for any.
      part: of the run; None: all of it.

    Raises:
      InputError: no run can be that.
    """
    if model.get("name") in DISTRIBUTIONS:
        complete = dict(model)
        settings = settings_of_draws(experiment, complete)
    else:
        settings = settings_from(experiment)
        set_fields = {field: named[field] for field in _SET_FIELDS if named.get(field)}
        complete = _model_of(dict(model), set_fields)
    methods = [build_method(fields) for fields in samplers.values()]
    # Schedules that are invalid with these settings are refused here.
    for method in methods:
        program_of(method, settings)
    return RunRequest(settings, complete, methods, part or Part())


def _model_of(model: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Returns the model config of a problem on graphs; what `load_dataset` does not check is
    checked here.

    What it leaves out, or holds None for, is that of the set that the experiment config is for, or
    a default.
    """
    unknown = sorted(set(model) - set(MODEL_FIELDS) - _IGNORED_MODEL_FIELDS)
    if unknown:
        raise InputError(
            f"model_config has no field {unknown[0]!r}; known: {', '.join(MODEL_FIELDS)}"
        )
    fields = {field: model[field] for field in MODEL_FIELDS if model.get(field) is not None}
    model = (
        {"name": "", "graph_type": "", "cfg_str": "_", "data_root": None, "penalty": PENALTY}
        | named
        | fields
    )
    for field in ("name", "graph_type", "cfg_str", "save_dir_name"):
        if not isinstance(model.get(field, ""), str):
            raise InputError(f"model_config.{field} is {model[field]!r}; expected str")
    if not model["graph_type"]:
        raise InputError(
            "neither config names a graph_type; give --model_config.graph_type, such as er_density"
        )
    expected = model | named
    # Covers have the graph types of independent sets.
    same_graphs = graph_types(expected["name"]) == graph_types(model["name"])
    if expected["graph_type"] != model["graph_type"] or not same_graphs:
        of_config, of_model = (
            f"{source['name']}/{source['graph_type']}" for source in (expected, model)
        )
        raise InputError(
            f"--config is for {of_config}, but --model_config for {of_model}; correct "
            "model_config.graph_type, or "
            "give the config of the set, such as configs/experiment/mis/er_density.py"
        )
    real("model_config.penalty", model["penalty"], least=1)
    if model["data_root"] is None:
        model["data_root"] = default_data_root()
    return model


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What an experiment has found: the answers of each sampler to each of G instances, verified.

    `sl_discs.run` returns it. Traces of a sampler are arrays [L, G], L the number of logged steps.

    Example:
        >>> found = sl_discs.run("GWG", name="mis", graph_type="er_density", cfg_str="r-0.10",
        ...                      num_instances=1, batch_size=4, chain_length=200)
        >>> found.record.samplers["gwg"].trajectory.shape, found.to_dataframe().feasible.tolist()
        ((2, 1), [True])
        >>> print(found.summary().splitlines()[0])
        mis/er_density/r-0.10: maximum independent set, 1 instance

    Attributes:
      record: the samplers, verified solutions and traces; None while parts of a divided run are
        missing.
      paths: of the files that were written, by name; empty for a run without a folder.
      resumed: what was taken from checkpoints, in words; empty: nothing.
      note: what a divided run still lacks, in words.

    Raises:
      InputError: from each method, if `record` is None.
    """

    record: ExperimentRecord | None
    paths: Mapping[str, Path] = dataclasses.field(default_factory=dict)
    resumed: str = ""
    note: str = ""

    def _finished(self) -> ExperimentRecord:
        if self.record is None:
            raise InputError(f"the experiment is not finished: {self.note}")
        return self.record

    def summary(self) -> str:
        """Returns the tables that the command `run` prints."""
        return format_summary(self._finished(), self.paths, self.resumed)

    def to_dataframe(self) -> pd.DataFrame:
        """Returns a row for each sampler and instance, with the fields of `InstanceRecord` but the
        solution.

        Raises:
          InputError: pandas is not installed.
        """
        pandas = import_extra("pandas")
        rows = []
        for name, sampler in self._finished().samplers.items():
            for fields in (instance.without_solution() for instance in sampler.instances):
                rows.append({"sampler": name, "instance": fields.pop("name"), **fields})
        return pandas.DataFrame(rows)

    def plot(self, path: str | os.PathLike | None = None):
        """Plots each sampler's running best, and the temperature, against steps.

        Args:
          path: of a PNG file; None to return the matplotlib figure, which a notebook shows.

        Raises:
          InputError: matplotlib is not installed, or the file cannot be written.
        """
        return plot_trajectories(self._finished(), path)

    def save(self, folder: str | os.PathLike) -> dict[str, Path]:
        """Writes the files of the experiment, as `results` describes them, and returns their paths
        by name.

        InputError if the folder cannot be written.
        """
        return write_results(self._finished(), check_writable(folder))


def run(
    samplers: str | Sequence[str | Mapping[str, Any]],
    config: Mapping[str, Any] | None = None,
    model_config: Mapping[str, Any] | None = None,
    *,
    folder: str | os.PathLike | None = None,
    overwrite: bool = False,
    progress: bool = False,
    **fields: Any,
) -> Experiment:
    """Runs samplers on the instances of a benchmark set, as the command `sl-discs run` does.

    Example:
        >>> found = run(["GWG", "PAS"], name="mis", graph_type="er_density", cfg_str="r-0.10",
        ...             num_instances=1, batch_size=4, chain_length=200)
        >>> found.to_dataframe().sampler.tolist()
        ['gwg', 'path_auxiliary']

    Args:
      samplers: names, or dicts of `name` and fields of a sampler's config; all run on the same
        instances.
      config: experiment config, as the files of `configs/experiment` return it.
      model_config: model config, as those of `configs/model` do.
      folder: for results and checkpoints, from which an interrupted run with the same arguments
        continues; None: no files are written.
      overwrite: whether results of another run in the folder are replaced.
      progress: whether progress is shown on the error stream.
      **fields: fields of both configs in addition, by name: those of the model (`name`,
        `graph_type`, `cfg_str`, `data_root`, `penalty`) and of the experiment (`chain_length`,
        `batch_size`, `num_instances`, `seed`, ...).

    Raises:
      InputError: an argument is wrong, or the folder holds another run.
      Interrupted: a signal ended the run.
    """
    config = dict(config or {})
    model = dict(model_config or {})
    model |= {name: value for name, value in fields.items() if name in MODEL_FIELDS}
    experiment = dict(config.get("experiment", {})) | {
        name: value for name, value in fields.items() if name not in MODEL_FIELDS
    }
    named = dict(config.get("model", {}))
    request = request_of(experiment, model, samplers_of(samplers), named=named)
    return perform(
        request, request.load(), None if folder is None else Path(folder), overwrite, shown=progress
    )


def samplers_of(samplers: Any) -> dict[str, dict[str, Any]]:
    """Returns the fields of each sampler by its own name, of names or mappings with a `name`."""
    fields_by_name: dict[str, dict[str, Any]] = {}
    samplers = [samplers] if isinstance(samplers, str | Mapping) else samplers
    if not samplers or not isinstance(samplers, list | tuple):
        raise InputError(
            f"samplers is {shown(samplers)}; expected a list of names, such as ['PAS', 'SL-PAS']"
        )
    for sampler in samplers:
        fields = dict(sampler) if isinstance(sampler, Mapping) else {"name": sampler}
        if not isinstance(fields.get("name"), str):
            raise InputError(
                f"samplers: {sampler!r} has no name; give a name such as 'PAS', or a dict with one"
            )
        name = own_name(fields["name"])
        if name in fields_by_name:
            raise InputError(f"sampler {name!r} is named twice; name each once")
        fields_by_name[name] = fields | {"name": name}
    return fields_by_name


def perform(
    request: RunRequest,
    dataset: Dataset,
    folder: Path | None,
    overwrite: bool = False,
    notice: Notice | None = None,
    *,
    shown: bool = True,
) -> Experiment:
    """Runs an experiment; of several parts, the last one joins the results.

    Args:
      request: what to run.
      dataset: its instances, of `RunRequest.load`.
      folder: of results and checkpoints; None: nothing is written, and the run has one part.
      overwrite: whether results of another run are replaced.
      notice: of a signal that ends the run.
      shown: whether progress is shown.
    """
    part = request.part
    if jax.process_count() > part.count:
        raise InputError(
            f"this is one of {jax.process_count()} processes of jax.distributed, which would all "
            "do the same; give each of them a part (--part=K/N), without jax.distributed"
        )
    penalty = float(request.model.get("penalty", PENALTY))
    leave_cards_alone(
        engine_for(dataset, method, request.settings)[0] for method in request.methods
    )
    plans, note = plans_in_memory(dataset, penalty, request.methods, request.settings)
    settings = plans[0].settings
    engines = {plan.method.name: plan.engine for plan in plans}
    config: dict[str, Any] = {
        "experiment": vars(settings),
        "model": request.model,
        "samplers": {method.name: dict(method.fields) for method in request.methods},
    }
    if folder is not None:
        check_writable(folder)
        done = (folder / "results.json").exists()
        if part.count > 1 and done and not overwrite:
            check_finished(folder, config, dataset.name)
            return Experiment(None, note=f"{part.label}: all parts are done and joined in {folder}")
        if part.count == 1 and not done and not overwrite and (folder / "parts").exists():
            raise InputError(
                f"{folder}: parts of a run wait there to be joined; run the others with --part, or "
                "give another save_root"
            )
    with contextlib.ExitStack() as stack:
        own = None if folder is None else stack.enter_context(part.locked(folder))
        if folder is not None and not overwrite:
            check_finished(folder, config, dataset.name)
        if note:
            tell(note)
        kind = run_identity(
            config, {name: engine.name for name, engine in engines.items()}, settings, dataset
        )
        checkpoints = None
        if own is not None:
            checkpoints = Checkpoints(
                own / "checkpoint", kind, settings.checkpoint_every_s, notice or Notice()
            )
        # Of all parts, so that a part that does not belong to the others is refused before it runs.
        samplers = None if folder is None else part.records(folder, kind)[part.index - 1]
        if samplers is None:
            samplers = {}
            total = plans[0].total_steps()
            metrics = None
            if folder is not None and own is not None:
                metrics = folder / ("-".join(["metrics", *part.label.split()]) + ".jsonl")
                if not (own / "checkpoint").exists():
                    metrics.unlink(missing_ok=True)
            with progress_bar(total, label=part.label, shown=shown) as progress:
                for plan in plans:
                    name = plan.method.name
                    advance = functools.partial(progress, name)
                    samplers[name] = run_sampler(plan, advance, checkpoints, metrics)
        if folder is not None and part.count > 1:
            part.keep_records(folder, kind, samplers)
            stack.enter_context(part.joining(folder))
            records_of_part = part.records(folder, kind)
            if records_of_part[part.index - 1] is None:
                return Experiment(
                    None,
                    note=f"{part.label}: done; another part has joined the results in {folder}",
                )
            missing = [str(k) for k, records in enumerate(records_of_part, 1) if records is None]
            if missing:
                return Experiment(None, note=f"{part.label}: done; missing: {', '.join(missing)}")
            samplers = {
                name: join_records([records[name] for records in records_of_part if records])
                for name in samplers
            }
        devices = describe_devices(engines.values(), part.count)
        record = ExperimentRecord(dataset, settings, config, samplers, devices, versions())
        if folder is None or checkpoints is None:
            return Experiment(record)
        resumed = checkpoints.resumed()
        try:
            paths = write_results(record, folder)
        except InputError:
            tell(format_summary(record, resumed=resumed))  # so that not all is lost
            raise
        part.remove_unfinished(folder)
        return Experiment(record, paths, resumed)
