"""Every field of the configs refuses values that it cannot have, in one line that names it as it is typed."""

import dataclasses
import math

import pytest

from sl_discs.errors import InputError
from sl_discs.experiment.run import check_methods
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.localization.method import build_method, method_fields

# Nothing to be a number, a switch or a name of anything.
BAD = (-1, -1.0, math.nan, math.inf, -math.inf, 1e300, 10**30, "x", "", None, [1], {}, 2.5, True, 0)
MAY_BE_ZERO = {
    "seed", "data_seed", "first_instance", "instances_per_batch", "use_devices", "threads",
    "checkpoint_every_s", "memory_gib", "reheats",
}  # fmt: skip
MAY_BE_NONE = {"num_instances", "adapt_until"}
# Sizes: refused where they are known to be too much.
MAY_BE_HUGE = {
    "batch_size", "anneal_every", "num_instances", "instance_stride", "first_instance",
    "instances_per_batch", "use_devices", "threads", "data_seed",
}  # fmt: skip
MAY_BE_INFINITE = {"checkpoint_every_s", "memory_gib"}


def is_fine(field, value, default):
    """Whether a value of `BAD` is a good one of this field all the same."""
    if value is None:
        return field in MAY_BE_NONE
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(default, bool) and isinstance(value, bool)
    if isinstance(default, str) or isinstance(value, str):
        return field == "save_root" and isinstance(value, str)
    if isinstance(value, list | dict):
        return False
    if isinstance(value, float) and not isinstance(default, float):
        return False
    if value == 0:
        return field in MAY_BE_ZERO
    if value == math.inf:
        return field in MAY_BE_INFINITE
    if value == 10**30:
        return field in MAY_BE_HUGE or isinstance(default, float)
    return not value < 0 and not math.isnan(value)


def refused(field, value, build):
    try:
        build(value)
    except InputError as error:
        assert field in str(error) and "\n" not in str(error)
        return True
    return False


SETTINGS = {field.name: field.default for field in dataclasses.fields(Settings)}


@pytest.mark.parametrize("field", sorted(SETTINGS.keys() - {"chain_length"}))
def test_experiment(field):
    for value in BAD:
        if not is_fine(field, value, SETTINGS[field]):
            assert refused(f"config.experiment.{field}", value, lambda value: settings_from({field: value})), value


@pytest.mark.parametrize("schedule", [("a", 2), (1.0, None), ((1.0, 2.0), 3.0), (1j,), (1.0, -1.0), ()])
def test_tables_of_temperatures(schedule):
    with pytest.raises(InputError, match="t_schedule: a tuple of temperatures holds what is not a number above 0"):
        settings_from({"t_schedule": schedule})


@pytest.mark.parametrize("sampler", ["sl_gwg", "path_auxiliary", "dmala"])
def test_samplers(sampler):
    for field, default in method_fields(sampler).items():
        for value in BAD:
            if not is_fine(field, value, default):

                def build(value, field=field):
                    check_methods([build_method({"name": sampler} | {field: value}, 4)], Settings())

                named = f"sampler_config.{field}" if not (field == "name" and isinstance(value, str)) else "sampler"
                assert refused(named, value, build), (field, value)
