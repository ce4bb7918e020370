r"""Runs one benchmark experiment, with DISCS's flags.

sl-discs run --config=configs/experiment/mis/er_density.py \
    --model_config=configs/model/mis_config.py --model_config.graph_type=er_density \
    --model_config.cfg_str=r-0.10 --samplers=path_auxiliary,sl_path_auxiliary

Fields of the three configs are overridden as in `--config.experiment.chain_length=2000`. Several
samplers run on the same instances with the same seeds, and their paired differences are printed.

A run may be divided: with --part=K/N a process runs the K-th of N parts of the instances, at any
time and on any machine that sees the same folder. The one that ends last writes the results and
prints the summary.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import flags
from ml_collections import config_dict, config_flags

from sl_discs.commands.command import (
    Command,
    define_arguments,
    forget_flags,
    own_flags,
    parse_flags,
    section_of,
)
from sl_discs.engines.choice import ENGINES
from sl_discs.engines.compiled import keep_programs
from sl_discs.engines.devices import one_device_per_core
from sl_discs.experiment.experiment import (
    MODEL_FIELDS,
    RunRequest,
    perform,
    request_of,
    run,
    samplers_of,
)
from sl_discs.experiment.parts import Part
from sl_discs.experiment.settings import Settings
from sl_discs.instances.dataset import graph_types
from sl_discs.localization.method import Method, method_config, method_fields
from sl_discs.localization.schedule import Localization
from sl_discs.samplers.registry import base_samplers, known_samplers, own_name, registered
from sl_discs.support.errors import InputError
from sl_discs.support.figures import or_warn
from sl_discs.support.own_code import error_of_file
from sl_discs.support.signals import notice_of_end
from sl_discs.support.terminal import say

FLAGS, define = own_flags()
_define_config = functools.partial(config_flags.DEFINE_config_file, default=None, flag_values=FLAGS)


def _lines(meanings: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {meaning}" for name, meaning in meanings.items())


help_text = _lines(section_of(Settings, "Attributes"))
_EXPERIMENT = _define_config(
    "config",
    help_string=f"Experiment config. Fields, as --config.experiment.FIELD=VALUE:\n{help_text}",
)
help_text = _lines(MODEL_FIELDS)
_MODEL = _define_config(
    "model_config", help_string=f"Model config. Fields, as --model_config.FIELD=VALUE:\n{help_text}"
)
help_text = "\n".join(
    f"{name}: {', '.join(f'{field}={value}' for field, value in registered(name).fields.items())}"
    for name in base_samplers()
)
_OF_LOCALIZATION = _lines(section_of(Localization, "Attributes"))
_SAMPLER = _define_config(
    "sampler_config",
    help_string="Sampler config; with --samplers, the config of one of those samplers. Fields, as "
    f"--sampler_config.FIELD=VALUE, with their defaults:\n{help_text}\n"
    f"Fields of sl_ samplers in addition to those of the base:\n{_OF_LOCALIZATION}",
    # So that a file may leave out fields, such as a file of DISCS those of localization;
    # build_method checks them.
    lock_config=False,
    accept_new_attributes=True,
)
help_text = (
    "Names of samplers to compare. Each uses its defaults, or --sampler_config if that has its "
    "name. Fields of the latter given as --sampler_config.FIELD apply to every sampler that has "
    f"the field. Known: {', '.join(known_samplers())}."
)
define.list("samplers", None, help_text)
define.enum(
    "engine", None, ENGINES, "Engine that runs the chains; short for --config.experiment.engine."
)
help_text = (
    "Run only the K-th of N parts of the instances, such as 3/8; auto: that of this task of a "
    "Slurm job or array. The part that ends last writes the results."
)
define.string("part", None, help_text)
define_arguments(FLAGS, run)
define.boolean("run_local", False, "Save under ./results/<save_dir_name>, as DISCS does.")


def _fields(flag) -> dict[str, Any] | None:
    """Returns the fields of a config flag, None if it was not given; reports a file that could not
    be loaded.
    """
    try:
        value = flag.value
        # What stands for a file that could not be loaded raises its error at any attribute.
        fields = None if value is None else getattr(value, "to_dict", None)
    except (Exception, SystemExit) as error:  # of the file, which is a program
        raise InputError(f"--{flag.name}: {error_of_file(error)}") from error
    if value is not None and fields is None:
        raise InputError(
            f"--{flag.name}: get_config() returns a {type(value).__name__}; expected a ConfigDict"
        )
    return fields and fields()


def _samplers() -> dict[str, dict[str, Any]]:
    """Returns the fields of each sampler that the flags name, as far as they are given."""
    config = _fields(_SAMPLER)
    if config is None and FLAGS.samplers is None:
        raise InputError("no sampler is named; give --sampler_config=FILE or --samplers=NAME,NAME")
    if config is None:
        return samplers_of(FLAGS.samplers)
    samplers = samplers_of(config)
    if FLAGS.samplers is None:
        return samplers
    [configured] = samplers
    names = [own_name(name) for name in FLAGS.samplers]
    if configured not in names:
        raise InputError(
            f"--sampler_config is of {configured!r}, which --samplers={','.join(names)} lacks; add "
            "it there, or give the config of one of these"
        )
    overridden = config_flags.get_override_values(FLAGS["sampler_config"])
    chosen = []
    for name in names:
        known = method_fields(name)
        shared = {field: value for field, value in overridden.items() if field in known}
        chosen.append(samplers.get(name, shared | {"name": name}))
    return samplers_of(chosen)


def _set_of(experiment: dict[str, Any]) -> dict[str, Any]:
    """Returns the names of the set that the experiment config is for; {} if it is for any.

    They are in its field `model`; without it, the folder and the name of the file tell, as in
    DISCS: mis/satlib.py.
    """
    fields = experiment.get("model") or {}
    if not isinstance(fields, dict):
        raise InputError(
            f"--config: its field model is {fields!r}; expected a ConfigDict of fields"
        )
    path = Path(config_flags.get_config_filename(FLAGS["config"]).partition(":")[0])
    if not fields and path.stem in graph_types(path.parent.name):
        fields = {"name": path.parent.name, "graph_type": path.stem}
    return fields


def _save_folder(settings: Settings, model: dict, dataset: str, methods: list[Method]) -> Path:
    if FLAGS.run_local:
        return Path("results") / model.get("save_dir_name", model["name"])
    if settings.save_root:
        return Path(settings.save_root).expanduser()
    run = "+".join(method.name for method in methods) + f"-seed{settings.seed}"
    return Path("results").joinpath(
        *(re.sub(r"[^A-Za-z0-9._+-]+", "-", name) for name in (dataset, run))
    )


def _requested() -> RunRequest:
    part = Part() if FLAGS.part is None else Part.parse(FLAGS.part)
    experiment = _fields(_EXPERIMENT)
    model = _fields(_MODEL)
    if experiment is None:
        raise InputError(
            "no experiment is given; pass --config=FILE, such as "
            "configs/experiment/mis/er_density.py"
        )
    if model is None:
        raise InputError(
            "no model is given; pass --model_config=FILE, such as configs/model/mis_config.py"
        )
    fields = experiment.get("experiment", {})
    if not isinstance(fields, dict):
        raise InputError(
            f"--config: its field experiment is {fields!r}; expected a ConfigDict of fields"
        )
    fields = fields if FLAGS.engine is None else fields | {"engine": FLAGS.engine}
    return request_of(fields, model, _samplers(), named=_set_of(experiment), part=part)


def check_flags(arguments: Sequence[str]) -> None:
    """Raises an InputError if `sl-discs run` would refuse these arguments before it reads any
    instance.
    """
    try:
        parse_flags(FLAGS, _with_sampler_file(["sl-discs run", *arguments]))
        _requested()
    except flags.Error as error:
        raise InputError(f"{error}; see sl-discs run --help") from None
    finally:
        forget_flags(FLAGS)


def _run(_) -> int:
    """The best states of a problem on graphs; of several parts, the last one writes and prints."""
    one_device_per_core()
    keep_programs()
    request = _requested()
    dataset = request.load()
    folder = _save_folder(request.settings, request.model, dataset.name, request.methods)
    # A signal that comes at the end must not end a finished run as if it had failed.
    with notice_of_end() as notice:
        experiment = perform(request, dataset, folder, FLAGS.overwrite, notice)
        if experiment.record is None:
            say(experiment.note)
            return 0
        say(experiment.summary())
        if figure := or_warn(lambda: experiment.plot(folder / "trajectory.png")):
            say(f"  {figure.name}")
    return 0


def get_config(name: str) -> config_dict.ConfigDict:
    """Returns the config of a sampler by its name; this file is the config file of
    `_with_sampler_file`.
    """
    return method_config(name)


_SAMPLER_FILE = re.compile(r"(?<![^=])(?:[^=]*/)?configs/sampler/(\w+)_config\.py$")


def _config_of_name(path: re.Match) -> str:
    """Returns the config of the sampler that a path names; the path itself if it is a file."""
    if Path(path[0]).exists() or path[1] not in known_samplers():
        return path[0]
    return f"{__file__}:{path[1]}"


def _with_sampler_file(argv: Sequence[str]) -> Sequence[str]:
    """Returns the arguments, with the config of a sampler where its name or fields are given.

    A path such as configs/sampler/gwg_config.py names a registered sampler where there is no such
    file. Fields without a config are those of the first of the samplers named that has them all.
    """
    argv = [_SAMPLER_FILE.sub(_config_of_name, argument) for argument in argv]
    text = "\n".join(argv)
    fields = set(re.findall(r"^--?sampler_config\.([^.=\n]+)", text, re.MULTILINE))
    samplers = re.search(r"^--?samplers[=\n](.*)$", text, re.MULTILINE)
    if not fields or not samplers or re.search(r"^--?sampler_config(=|$)", text, re.MULTILINE):
        return argv
    names = [own_name(name) for name in samplers[1].split(",")]
    having = [name for name in names if fields <= method_fields(name).keys()]
    return [*argv[:1], f"--sampler_config={__file__}:{(having or names)[0]}", *argv[1:]]


main = Command("", __doc__, FLAGS, _run, reads=_with_sampler_file)
