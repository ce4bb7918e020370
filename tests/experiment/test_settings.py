"""Settings: each field refuses what it cannot have, in one line that names it as it is typed; and
temperatures.
"""

import dataclasses
import math
import tracemalloc

import numpy as np
import pytest

from sl_discs.chains import annealing
from sl_discs.chains.chains import program_of, schedule_of
from sl_discs.experiment.settings import Settings, settings_from
from sl_discs.localization.method import build_method, method_fields
from sl_discs.localization.schedule import Localization, level_budgets
from sl_discs.support.errors import InputError

# Nothing to be a number, a switch or a name of anything, for fields of these types.
NEVER = ("x", None, [1], {}, -1, -1.0, math.nan, -math.inf)
BAD = {
    bool: (*NEVER, 0, 2.5, math.inf),
    int: (*NEVER, True, 2.5, math.inf, 1e300),
    float: (*NEVER, True),
    str: (*NEVER[1:], True, 0, 2.5, math.inf),
}
MAY_BE_NONE = {"num_instances", "adapt_until"}
DEFAULTS = {field.name: field.default for field in dataclasses.fields(Settings)}


def refuses(field, values, build):
    for value in values:
        if value is None and field.rpartition(".")[2] in MAY_BE_NONE:
            continue
        with pytest.raises(InputError) as refusal:
            build(value)
        assert field in str(refusal.value) and "\n" not in str(refusal.value), value


@pytest.mark.parametrize("field", DEFAULTS)
def test_a_field_of_the_experiment_refuses_what_it_cannot_have(field):
    default = DEFAULTS[field]
    values = BAD[int if default is None else type(default)]
    if isinstance(default, int) and default:
        values = (*values, 0, 2**31, 2**70)
    if field in ("init_temperature", "final_temperature", "decay_rate"):
        values = (*values, 0, math.inf, 1e300)
    refuses(f"config.experiment.{field}", values, lambda value: settings_from({field: value}))


@pytest.mark.parametrize("sampler", ["sl_gwg", "path_auxiliary", "dmala"])
def test_a_field_of_a_sampler_refuses_what_it_cannot_have(sampler):
    for field, default in method_fields(sampler).items():

        def build(value, field=field):
            program_of(build_method({"name": sampler} | {field: value}), Settings())

        refuses(
            "sampler" if field == "name" else f"sampler_config.{field}",
            BAD[int if default is None else type(default)],
            build,
        )


def test_long_chains_take_no_memory():
    tracemalloc.start()
    long = cooled("exp_decay", 2 * 10**9, init_temperature=2.0)
    assert len(long) == 2 * 10**9
    assert long[-1] == np.float32(0.02)
    assert long[10**6 : 10**6 + 3].shape == (3,)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


def cooled(schedule, length, **fields):
    """Temperatures that fall from 1 to 0.2, or by a factor of 0.01."""
    fields = {
        "final_temperature": 0.2 if schedule == "linear" else 1e-4,
        "decay_rate": 0.01,
    } | fields
    return Settings(
        t_schedule=schedule, chain_length=length, log_every_steps=1, **fields
    ).temperatures()


def test_temperatures():
    np.testing.assert_allclose(cooled("constant", 4, init_temperature=0.5), [0.5] * 4)
    np.testing.assert_allclose(cooled("linear", 4), [0.8, 0.6, 0.4, 0.2])
    np.testing.assert_allclose(cooled("exp_decay", 2), [0.1, 0.01])
    np.testing.assert_allclose(cooled((3.0, 2.0), 5), [3.0, 3.0, 3.0, 2.0, 2.0])
    np.testing.assert_allclose(cooled("exp_decay", 2, final_temperature=0.05), [0.1, 0.05])


SCHEDULES = {name: {} for name in annealing.SCHEDULES} | {
    "held": {"t_schedule": "linear", "anneal_every": 3},
    "listed": {"t_schedule": (3.0, 2.0, 0.5)},
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_an_annealing_inside_each_level_is_that_of_a_run_as_long_as_the_level(name):
    schedule, fields = name, dict(SCHEDULES[name])
    schedule = fields.pop("t_schedule", schedule)
    localization = Localization(K=7, n_min=3, anneal="level")
    settings = Settings(
        t_schedule=schedule,
        chain_length=500,
        log_every_steps=1,
        init_temperature=2.0,
        final_temperature=0.1,
        **fields,
    )
    method = build_method({"name": "sl_gwg"} | dataclasses.asdict(localization))
    temperatures = schedule_of(method, settings)
    budgets = level_budgets("exp_decay", 500, 7, 3, localization.r)
    each = [dataclasses.replace(settings, chain_length=int(n)).temperatures()[:] for n in budgets]
    whole = np.concatenate(each)
    np.testing.assert_array_equal(temperatures[:], whole)
    for piece in (slice(0, 0), slice(1, 400), slice(3, 500, 7), np.array([499, 0]), 250):
        np.testing.assert_array_equal(temperatures[piece], whole[piece])
    over_run = dataclasses.replace(
        method, localization=dataclasses.replace(localization, anneal="run")
    )
    np.testing.assert_array_equal(schedule_of(over_run, settings)[:], settings.temperatures()[:])
    assert (name == "constant") == np.array_equal(whole, settings.temperatures()[:])


@pytest.mark.parametrize("every", [1, 3, 200])
def test_slices_of_temperatures_are_those_of_the_whole(every):
    one_by_one = cooled("linear", 70_001, anneal_every=every)
    whole = np.asarray(one_by_one)
    np.testing.assert_allclose(
        whole[: 3 * every : every], 1 - 0.8 * (1 + every * np.arange(3)) / 70_001, rtol=1e-6
    )
    assert (np.diff(whole) < 0).sum() == -(-70_001 // every) - 1
    for piece in (
        slice(2, 2),
        slice(1, 500),
        slice(65_530, 70_001),
        slice(65_530, 70_001, 7),
        np.array([0, 70_000]),
    ):
        np.testing.assert_array_equal(one_by_one[piece], whole[piece])
    assert one_by_one[69_999] == whole[69_999]
