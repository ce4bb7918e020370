r"""Runs one benchmark experiment, with DISCS's flags.

sl-discs run --config=configs/experiment/mis/er_density.py \
    --model_config=configs/model/mis_config.py --model_config.graph_type=er_density --model_config.cfg_str=r-0.10 \
    --samplers=path_auxiliary,sl_path_auxiliary

Fields of the three configs are overridden as in `--config.experiment.chain_length=2000`. Several samplers run on the
same instances with the same seeds, and their paired differences are printed.

A run may be divided: with --part=K/N a process runs the K-th of N parts of the instances, at any time and on any
machine that sees the same folder. The one that ends last writes the results and prints the summary.
"""

import contextlib
import functools
import re
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from absl import flags
from ml_collections import config_dict, config_flags

from sl_discs.chains.checkpoint import Checkpoints, notice_of_end
from sl_discs.command import Command, attributes_of, error_of_file, own_flags, parse_flags, say
from sl_discs.discs_plugin.launch import add_working_directory
from sl_discs.discs_plugin.upstream import borrow_named
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.registry import ENGINES, leave_cards_alone, one_device_per_core
from sl_discs.errors import InputError, real
from sl_discs.experiment.parts import Part, join_records
from sl_discs.experiment.record import ExperimentRecord, check_finished, device_in_words, kind_of_run, versions
from sl_discs.experiment.results import check_place, write_results
from sl_discs.experiment.run import check_methods, engine_for, fit_to_memory, run_sampler, total_chain_steps
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.experiment.summary import draw_trajectories, format_summary
from sl_discs.figures import or_warn
from sl_discs.files import check_writable
from sl_discs.instances.dataset import default_data_root, graph_types, load_dataset
from sl_discs.instances.graph import Dataset
from sl_discs.localization.method import Method, build_method, method_config, method_fields
from sl_discs.localization.schedule import Localization
from sl_discs.problem_names import GRAPH_PROBLEMS, in_words
from sl_discs.problems.kind import PENALTY
from sl_discs.progress import progress_bar
from sl_discs.samplers import known_samplers
from sl_discs.samplers.registry import is_localized, own_name, sampler_fields
from sl_discs.terminal import tell

_MODEL_FIELDS = {
    "name": f"{in_words(GRAPH_PROBLEMS)}.",
    "graph_type": "dataset, as DISCS names it; left out: that of the experiment config.",
    "cfg_str": "configuration of the dataset, such as r-0.10; _ for none; left out: that of the experiment config.",
    "data_root": "folder searched for DISCS's files, then for an archive.",
    "penalty": "penalty of a conflict in mis, maxclique and vertex_cover, at least 1.",
    "save_dir_name": "folder of the results below ./results, with --run_local.",
}

FLAGS, define = own_flags()
_define_config = functools.partial(config_flags.DEFINE_config_file, default=None, flag_values=FLAGS)
words = f"Experiment config. Fields, as --config.experiment.FIELD=VALUE:\n{attributes_of(Settings)}"
_EXPERIMENT = _define_config("config", help_string=words)
words = "\n".join(f"{name}: {meaning}" for name, meaning in _MODEL_FIELDS.items())
_MODEL = _define_config("model_config", help_string=f"Model config. Fields, as --model_config.FIELD=VALUE:\n{words}")
_BASES = {name: sampler_fields(name) for name in known_samplers() if not is_localized(name)}
words = "\n".join(
    f"{sampler}: {', '.join(f'{name}={value}' for name, value in fields.items()) or 'none'}"
    for sampler, fields in _BASES.items()
)
_SAMPLER = _define_config(
    "sampler_config",
    help_string="Sampler config; with --samplers, the config of one of those samplers. Fields, as "
    f"--sampler_config.FIELD=VALUE, with their defaults:\n{words}\n"
    f"Fields of sl_ samplers in addition to those of the base:\n{attributes_of(Localization)}",
    # So that a file may leave out fields, such as a file of DISCS those of localization; build_method checks them.
    lock_config=False,
    accept_new_attributes=True,
)
words = (
    "Names of samplers to compare. Each uses its defaults, or --sampler_config if that has its name. Fields of "
    "the latter given as --sampler_config.FIELD apply to every sampler that has the field. Known: "
    f"{', '.join(known_samplers())}; with a checkout of DISCS also its own, such as discs:dlmc or sl:discs:dlmc."
)
define.list("samplers", None, words)
define.enum("engine", None, ENGINES, "Engine that runs the chains; short for --config.experiment.engine.")
words = "Run only the K-th of N parts of the instances, such as 3/8. The part that ends last writes the results."
define.string("part", None, words)
define.boolean("overwrite", False, "Replace the results of another run in the same folder, which otherwise are kept.")
define.boolean("run_local", False, "Save under ./results/<save_dir_name>, as DISCS does.")

# Fields of DISCS's model configs that are taken from the instances here.
_MODEL_DISCS_ONLY = {
    "max_num_nodes", "max_num_edges", "num_instances", "num_models", "num_categories", "shape", "rand_type"
}  # fmt: skip


def _fields(flag) -> dict[str, Any] | None:
    """Returns the fields of a config flag, None if it was not given; reports a file that could not be loaded."""
    try:
        value = flag.value
        # What stands for a file that could not be loaded raises its error at any attribute.
        fields = None if value is None else getattr(value, "to_dict", None)
    except (Exception, SystemExit) as error:  # of the file, which is a program
        raise InputError(f"--{flag.name}: {error_of_file(error)}") from error
    if value is not None and fields is None:
        raise InputError(f"--{flag.name}: get_config() returns a {type(value).__name__}; expected a ConfigDict")
    return fields and fields()


def _methods(num_chains: int) -> tuple[list[Method], dict[str, dict[str, Any]]]:
    """Returns the methods that the flags name, and the config fields of each."""
    given = _fields(_SAMPLER) or {}
    if given:
        if not isinstance(given.get("name"), str):
            raise InputError(f"--sampler_config: its name is {given.get('name')!r}; expected str, such as 'gwg'")
        given["name"] = own_name(given["name"])
    names = [given["name"]] * bool(given) if FLAGS.samplers is None else [own_name(name) for name in FLAGS.samplers]
    if not names:
        raise InputError("no sampler is named; give --sampler_config=FILE or --samplers=NAME,NAME")
    if given and given["name"] not in names:
        raise InputError(
            f"--sampler_config is of {given['name']!r}, which --samplers={','.join(names)} lacks; add it "
            "there, or give the config of one of these"
        )
    borrow_named(names)
    overridden = config_flags.get_override_values(FLAGS["sampler_config"]) if given else {}
    configs = {}
    for name in names:
        known = method_fields(name)
        shared = {field: value for field, value in overridden.items() if field in known and field != "name"}
        configs[name] = known | (given if name == given.get("name") else shared)
    return [build_method(configs[name], num_chains) for name in names], configs


_SET_FIELDS = "name", "graph_type", "cfg_str"


def _set_of(experiment: dict[str, Any]) -> dict[str, Any]:
    """Returns name, graph_type and cfg_str of the set that the experiment config is for; {} if it is for any.

    They are in its field `model`; without it, the folder and the name of the file tell, as in DISCS: mis/satlib.py.
    """
    fields = experiment.get("model") or {}
    if not isinstance(fields, dict):
        raise InputError(f"--config: its field model is {fields!r}; expected a ConfigDict of fields")
    path = Path(config_flags.get_config_filename(FLAGS["config"]).partition(":")[0])
    if not fields and path.stem in graph_types(path.parent.name):
        fields = {"name": path.parent.name, "graph_type": path.stem}
    return {field: fields[field] for field in _SET_FIELDS if fields.get(field)}


def _graph_model(model: dict[str, Any], named: dict[str, Any]) -> dict[str, Any]:
    """Returns the model config of a problem on graphs; what `load_dataset` does not check is checked here.

    What it leaves out, or holds None for, is that of the set that the experiment config is for, or a default.
    """
    unknown = sorted(set(model) - set(_MODEL_FIELDS) - _MODEL_DISCS_ONLY)
    if unknown:
        raise InputError(f"model_config has no field {unknown[0]!r}; known: {', '.join(_MODEL_FIELDS)}")
    given = {field: value for field, value in model.items() if value is not None}
    model = {"name": "", "graph_type": "", "cfg_str": "_", "data_root": None, "penalty": PENALTY} | named | given
    for field in ("name", "graph_type", "cfg_str", "save_dir_name"):
        if not isinstance(model.get(field, ""), str):
            raise InputError(f"model_config.{field} is {model[field]!r}; expected str")
    if not model["graph_type"]:
        raise InputError("neither config names a graph_type; give --model_config.graph_type, such as er_density")
    expected = model | named
    # Covers have the graph types of independent sets.
    same_graphs = graph_types(expected["name"]) == graph_types(model["name"])
    if expected["graph_type"] != model["graph_type"] or not same_graphs:
        of_config, of_model = (
            "/".join(filter(None, (one.get("name"), one.get("graph_type")))) for one in (named, given)
        )
        raise InputError(
            f"--config is for {of_config}, but --model_config for {of_model}; correct model_config.graph_type, or "
            "give the config of the set, such as configs/experiment/mis/er_density.py"
        )
    real("model_config.penalty", model["penalty"], least=1)
    if model["data_root"] is None:
        model["data_root"] = default_data_root()
    return model


def _save_folder(settings: Settings, model: dict, dataset: str, methods: list[Method]) -> Path:
    if FLAGS.run_local:
        return Path("results") / model.get("save_dir_name", model["name"])
    if settings.save_root:
        return Path(settings.save_root).expanduser()
    run = "+".join(method.name for method in methods) + f"-seed{settings.seed}"
    return Path("results").joinpath(*(re.sub(r"[^A-Za-z0-9._+-]+", "-", name) for name in (dataset, run)))


def _load(settings: Settings, model: dict[str, Any], part: Part) -> Dataset:
    """This part's share of the instances."""
    first, count, stride = settings.first_instance, settings.num_instances, settings.instance_stride
    family = model["name"], model["graph_type"], model["cfg_str"], model["data_root"]
    load = functools.partial(load_dataset, *family, stride=stride, data_seed=settings.data_seed)
    if part.count == 1:
        return load(first=first, num_instances=count)
    if count is None:
        count = -(-(load(first=first, num_instances=1).total - first) // stride)
    else:
        load(first=first + (count - 1) * stride, num_instances=1)  # all parts fail alike if there are fewer instances
    share = part.share(count)
    return load(first=first + share.start * stride, num_instances=len(share))


class _Request(NamedTuple):
    """What the flags ask for; `samplers` are the config fields of each method."""

    settings: Settings
    model: dict[str, Any]
    methods: list[Method]
    samplers: dict[str, dict[str, Any]]
    part: Part


def _requested() -> _Request:
    """Returns what the parsed flags ask for; InputError if no run can be that."""
    part = Part() if FLAGS.part is None else Part.parse(FLAGS.part)
    experiment, model = _fields(_EXPERIMENT), _fields(_MODEL)
    if experiment is None:
        raise InputError("no experiment is given; pass --config=FILE, such as configs/experiment/mis/er_density.py")
    if model is None:
        raise InputError("no model is given; pass --model_config=FILE, such as configs/model/mis_config.py")
    fields = experiment.get("experiment", {})
    if not isinstance(fields, dict):
        raise InputError(f"--config: its field experiment is {fields!r}; expected a ConfigDict of fields")
    settings = settings_from(fields if FLAGS.engine is None else fields | {"engine": FLAGS.engine})
    model = _graph_model(model, _set_of(experiment))
    methods, samplers = _methods(settings.batch_size)
    check_methods(methods, settings)
    return _Request(settings, model, methods, samplers, part)


def check_flags(arguments: Sequence[str]) -> None:
    """Raises an InputError if `sl-discs run` would refuse these arguments before it reads any instance."""
    before = sys.argv
    sys.argv = ["sl-discs run", *arguments]  # where overrides of a config's fields are looked for
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of how ml_collections loads a file
            parse_flags(FLAGS, _with_sampler_file(sys.argv))
        _requested()
    except flags.Error as error:
        raise InputError(f"{error}; see sl-discs run --help") from None
    finally:
        sys.argv = before
        FLAGS.unparse_flags()
        for override in [name for name in FLAGS if "." in name]:
            delattr(FLAGS, override)


def _run(_) -> int:
    """The best states of a problem on graphs; of several parts, the last one writes and prints."""
    one_device_per_core()
    keep_programs()
    begin = time.perf_counter()
    settings, model, methods, sampler_configs, part = _requested()
    dataset = _load(settings, model, part)
    engines = {method.name: engine_for(dataset, method.sampler, settings)[0] for method in methods}
    if all(engine.on_host for engine in engines.values()):
        leave_cards_alone()
    folder = check_writable(_save_folder(settings, model, dataset.name, methods))
    config = {
        "experiment": vars(settings),
        "model": {field: model[field] for field in _MODEL_FIELDS if field in model},
        "samplers": sampler_configs,
    }
    check_place(folder, sampler_configs, len(settings.logged_steps()), [graph.num_nodes for graph in dataset.graphs])
    part.check(folder)
    if part.count > 1 and (folder / "results.json").exists() and not FLAGS.overwrite:
        check_finished(folder, config, dataset.name)
        say(f"{part.label}: all parts are done and joined in {folder}")
        return 0
    with contextlib.ExitStack() as stack:
        own = stack.enter_context(part.locked(folder))
        if not FLAGS.overwrite:
            check_finished(folder, config, dataset.name)
        penalty = float(model["penalty"])
        settings, note = fit_to_memory(dataset, penalty, methods, settings)
        if note:
            tell(note)
        config["experiment"] = vars(settings)
        notice = stack.enter_context(notice_of_end())
        kind = kind_of_run(config, {name: engine.name for name, engine in engines.items()}, settings, dataset)
        checkpoints = Checkpoints(own / "checkpoint", kind, settings.checkpoint_every_s, notice)
        # Of all parts, so that a part that does not belong to the others is refused before it runs.
        samplers = part.records(folder, kind)[part.index - 1]
        if samplers is None:
            samplers = {}
            with progress_bar(total_chain_steps(dataset, settings), label=part.label) as progress:
                for method in methods:
                    advance = functools.partial(progress, method.name)
                    samplers[method.name] = run_sampler(dataset, penalty, method, settings, advance, checkpoints)
        if part.count > 1:
            part.keep_records(folder, kind, samplers)
            stack.enter_context(part.joining(folder))
            found = part.records(folder, kind)
            if found[part.index - 1] is None:
                say(f"{part.label}: done; another part has joined the results in {folder}")
                return 0
            missing = [str(k) for k, records in enumerate(found, 1) if records is None]
            if missing:
                say(f"{part.label}: done; missing: {', '.join(missing)}")
                return 0
            samplers = {name: join_records([records[name] for records in found if records]) for name in samplers}
        devices = device_in_words(engines.values(), part.count)
        record = ExperimentRecord(dataset, settings, config, samplers, devices, versions())
        try:
            paths = write_results(record, folder)
        except InputError:
            say(format_summary(record, resumed=checkpoints.resumed()))
            raise
        part.remove_unfinished(folder)
        say(format_summary(record, paths, checkpoints.resumed()))
        # Inside the block: a signal that comes now must not end a finished run as if it had failed.
        if figure := or_warn(lambda: draw_trajectories(record, folder / "trajectory.png")):
            say(f"  {figure.name}")
        if part.count == 1 and not checkpoints.resumed():
            all_s = time.perf_counter() - begin
            steps_s, compile_s = (
                sum(getattr(one, field) for one in samplers.values()) for field in ("run_s", "compile_s")
            )
            rest_s = all_s - steps_s - compile_s
            say(f"{all_s:.1f} s: steps {steps_s:.1f}, compiling {compile_s:.1f}, rest {rest_s:.1f}")
    return 0


def get_config(name: str) -> config_dict.ConfigDict:
    """Returns the config of a sampler by its name; this file is the config file of `_with_sampler_file`."""
    return method_config(name)


def _with_sampler_file(argv: Sequence[str]) -> Sequence[str]:
    """Returns the arguments, with a config for fields of a sampler that are given without one.

    It is that of the first of the samplers named that has all these fields; InputError if none has.
    """
    text = "\n".join(argv)
    fields = re.findall(r"^(--?sampler_config\.([^.=\n]+))", text, re.MULTILINE)
    if not fields or re.search(r"^--?sampler_config(=|$)", text, re.MULTILINE):
        return argv
    named = re.search(r"^--?samplers[=\n](.*)$", text, re.MULTILINE)
    for name in map(own_name, named[1].split(",") if named else ()):
        if name in known_samplers() and {field for _, field in fields} <= method_fields(name).keys():
            return [*argv[:1], f"--sampler_config={__file__}:{name}", *argv[1:]]
    raise InputError(
        f"{fields[0][0]} is of no sampler in --samplers; name one that has all fields given so, or give "
        "--sampler_config=FILE, its config, such as configs/sampler/sl_gwg_config.py"
    )


main = Command("", __doc__, FLAGS, _run, prepare=add_working_directory, reads=_with_sampler_file)
