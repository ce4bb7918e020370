"""The paper's numbers: the level of each method, differences of MaxCut methods, and which method is
above which.

A level or a difference passes within 2.5 combined standard errors: a method equal to the paper's
fails a comparison with probability 1.2 %, an order as its own test states. All seeds are fixed, so
a comparison that passes today fails only through a change of graphs, methods or engine. What is
known to be apart stands in `APART` with its reason, and fails as soon as it no longer is.

The paper's DMALA takes its step from the mean over the chains of an instance, as DISCS does, which
is ours with shared_scale=True: that is what has to have the published level and differences. Our
default, with a step for each chain, is exact and finds better solutions, so that it may be above
the level but not below it.

Not marked slow are a few graphs of two cells; the whole takes 33 CPU minutes, more than half of it
for the shared step, which only the reference engine plays (on 16 graphs where levels are compared).
SL_DISCS_CELLS names a folder where finished cells are kept. Real instances are those of the folder
that the other tests use.
"""

import functools
import importlib.util
import itertools
import math
import os
from pathlib import Path

import numpy as np
import pytest
from compared import COMPARED

import readings
from sl_discs.experiment.record import Spread
from sl_discs.experiment.summary import published_row
from sl_discs.reproduction.cells import PROFILES, PUBLISHED, Choice
from sl_discs.reproduction.report import in_published_unit, z_score
from sl_discs.reproduction.runs import Runner

DATA = Path(__file__).parents[3] / "shared" / "data"
LIMIT = 2.5

pytestmark = [
    pytest.mark.published,
    pytest.mark.skipif(
        importlib.util.find_spec("numba") is None, reason="without numba it takes hours"
    ),
]

BASE = ("gwg", "path_auxiliary", "dmala")
ONE_FLIP = "gwg, one flip"
SHARED_STEP = "dmala, shared step"
VARIANTS = {ONE_FLIP: ("gwg", {"adaptive": False}), SHARED_STEP: ("dmala", {"shared_scale": True})}
# The paper's base methods as it plays them, and DMALA with a step for each chain, which may be
# better.
AS_PUBLISHED, OWN_STEP = ("gwg", "path_auxiliary", SHARED_STEP), ("dmala", "sl_dmala")
LEVELS = "annealing inside each level, K 512"

# Graphs of a cell, as in a report of that profile; those of random sets are drawn from data seed 0.
GRAPHS = {name: PROFILES["cpu"].count(name, False) for name in PUBLISHED}
# The published percentages of these are of a reference that is not at hand.
DRAWN_CUTS = [
    name for name in GRAPHS if name.startswith("maxcut/er") or name.startswith("maxcut/ba")
]
WITH_LEVEL = [name for name in GRAPHS if name not in DRAWN_CUTS]


def method_and_fields(name):
    """The sampler of a method's name, and the fields of its config that differ from ours."""
    return VARIANTS.get(name, (name, {}))


def published_mean(dataset, name):
    return published_row(dataset, method_and_fields(name)[0]).mean


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """(dataset, method or VARIANTS, number of graphs if not the usual one) -> the finished cell;
    each is run once.
    """
    kept = os.environ.get("SL_DISCS_CELLS")
    runner = Runner(Path(kept) if kept else tmp_path_factory.mktemp("cells"), lambda line: None, 0)
    choice = Choice(None, None, "auto", (0,))

    @functools.cache
    def run(dataset, name, count=None):
        published, data = PUBLISHED[dataset], str(DATA) if DATA.is_dir() else None
        if published.absent(data) is not None:
            pytest.skip("the folder of real instances is not there")
        method, fields = method_and_fields(name)
        cell = choice.cell(published, method, changes=fields, setting=name)
        most = 16 if name == SHARED_STEP and dataset in WITH_LEVEL else GRAPHS[dataset]
        return runner.run(cell, published.load(data, count or min(GRAPHS[dataset], most)))

    return run


def paired(play, dataset, first, second):
    """[G] first minus second on the graphs that both played: sizes, or per cent of the better of
    the two.
    """
    one, two = (play(dataset, name).result.by_graph() for name in (first, second))
    count = min(len(one), len(two))
    one, two = one[:count], two[:count]
    return (
        one - two
        if PUBLISHED[dataset].problem == "mis"
        else 100 * (one - two) / np.maximum(one, two)
    )


# Why a comparison is further apart than its limit, by its parameters.
_ONE_FLIP = (
    "The paper's GWG flips several sites a step, as DISCS's gwg_config.py has it (adaptive=True): "
    "ours reaches the "
    "published means so (z -0.9, -0.5, 0.2, 0.2 on the four densities, -0.1 on satlib), and not "
    "with one flip (z of "
    "five seeds -3.2 to -3.9 on r-0.05, -2.8 to -3.5 on r-0.10)"
)
_SPARSE = (
    "512 short annealings are too short for ER-0.05: z -3.0 for PAS on 64 graphs, -4.3 for "
    "GWG on 128"
)
APART = {
    ("mis/er_density/r-0.05", ONE_FLIP, None): _ONE_FLIP,
    ("mis/er_density/r-0.10", ONE_FLIP, None): _ONE_FLIP,
    ("mis/er_density/r-0.05", "path_auxiliary", LEVELS): _SPARSE,
    ("mis/er_density/r-0.05", "gwg", LEVELS): _SPARSE,
}


@pytest.fixture
def compare(record_property):
    """Compares z with its bounds, and leaves the comparison to the table at the end of the
    output.
    """

    def check(cell, published, ours, z, least=-LIMIT, most=LIMIT):
        bound = f"{least:+g} to {most:+g}" if math.isfinite(least) and math.isfinite(most) else ""
        bound = bound or (f"at least {least:+g}" if math.isfinite(least) else f"at most {most:+g}")
        record_property(COMPARED, [cell, float(published), float(ours), float(z), bound])
        assert least <= z <= most, f"{cell}: {ours:.4f}, published {published:.4f}, z {z:.2f}"

    return check


def slow(keys):
    """Slow cases; those known to be apart are expected to fail, and must."""
    cases = []
    for key in keys:
        marks = [pytest.mark.slow]
        if key in APART:
            marks.append(pytest.mark.xfail(strict=True, raises=AssertionError, reason=APART[key]))
        cases.append(pytest.param(*key, marks=marks, id="-".join(filter(None, key))))
    return cases


@pytest.mark.parametrize(
    ("dataset", "name", "count"),
    [
        ("mis/er_density/r-0.20", "path_auxiliary", 16),
        ("maxcut/optsicom/r-b", "path_auxiliary", 10),
        *slow(
            itertools.product(
                WITH_LEVEL, [*AS_PUBLISHED, "sl_gwg", "sl_path_auxiliary", *OWN_STEP], [None]
            )
        ),
        *slow(
            itertools.product(
                ["mis/er_density/r-0.05", "mis/er_density/r-0.10"], [ONE_FLIP], [None]
            )
        ),
    ],
)
def test_level(play, compare, record_property, dataset, name, count):
    """A mean in the paper's unit; where every published graph is solved to the optimum, 98 % of
    ours are.
    """
    done = play(dataset, name, count)
    published = published_row(dataset, method_and_fields(name)[0])
    values = in_published_unit(done)
    if values is None:
        pytest.skip(
            "drawn graphs have no reference; the folder of real instances has the published ones"
        )
    if published.std == 0:
        bound = "98 % at it"
        record_property(
            COMPARED, [f"{dataset} {name}", published.mean, float(values.mean()), None, bound]
        )
        assert (values == published.mean).mean() >= 0.98
    else:
        z = z_score(Spread.of(values), published, PUBLISHED[dataset].published_n)
        most = math.inf if name in OWN_STEP else LIMIT
        compare(f"{dataset} {name}", published.mean, values.mean(), z, most=most)


@pytest.mark.parametrize(
    ("dataset", "first", "second"),
    slow(
        (dataset, *pair)
        for dataset in DRAWN_CUTS
        for pair in [
            *itertools.combinations(AS_PUBLISHED, 2),
            ("gwg", "dmala"),
            ("path_auxiliary", "dmala"),
        ]
    ),
)
def test_difference_of_cuts(play, compare, dataset, first, second):
    """First minus second, in per cent, which hardly depends on the reference; our own DMALA may be
    nearer.

    The paper gives no error of a difference. It is taken to scatter over the published graphs as
    ours does over our own; to that comes the rounding of two means to three digits.
    """
    values = paired(play, dataset, first, second)
    published = published_mean(dataset, first) - published_mean(dataset, second)
    scatter, n = values.std(ddof=1), PUBLISHED[dataset].published_n
    error = math.sqrt(scatter**2 * (1 / len(values) + 1 / n) + 2 * 0.001**2 / 12)
    z = (values.mean() - published) / error
    least = -math.inf if second in OWN_STEP else -LIMIT
    compare(f"{dataset} {first} - {second}", published, values.mean(), z, least=least)


def published_order():
    """(dataset, better, worse) of base methods, of SL methods, and of an SL method and its base.

    Those whose means differ by more than the error of the difference of two independent means.
    """
    pairs = [*itertools.permutations(BASE, 2)]
    pairs += [(f"sl_{one}", f"sl_{two}") for one, two in pairs]
    pairs += [order for name in BASE for order in ((f"sl_{name}", name), (name, f"sl_{name}"))]
    for dataset, (better, worse) in itertools.product(GRAPHS, pairs):
        one, two = published_row(dataset, better), published_row(dataset, worse)
        error = math.hypot(one.std, two.std) / math.sqrt(PUBLISHED[dataset].published_n)
        if one.mean - two.mean > error:
            yield dataset, better, worse


@pytest.mark.parametrize(("dataset", "better", "worse"), slow(published_order()))
def test_order(play, compare, dataset, better, worse):
    """The published order is not turned round: the better one's mean is not lower by more than the
    limit.

    Most of these differences are smaller than our errors, too, so that only a clear reversal says
    anything; two equal methods show one with probability 0.6 %.
    """
    values = paired(play, dataset, better, worse)
    error = values.std(ddof=1) / math.sqrt(len(values))
    z = (
        values.mean() / error
        if error
        else math.copysign(math.inf, values.mean())
        if values.mean()
        else 0.0
    )
    published = published_mean(dataset, better) - published_mean(dataset, worse)
    compare(f"{dataset} {better} > {worse}", published, values.mean(), z, most=math.inf)


@pytest.mark.parametrize(
    ("dataset", "name", "reading"),
    slow(itertools.product([name for name in GRAPHS if "er_density" in name], BASE, [LEVELS])),
)
def test_annealing_inside_each_level_has_the_published_level(compare, dataset, name, reading):
    """The localized row of the paper, by the reading of `studies/readings.py` whose gains are of
    the published size.

    DMALA may be better. A method equal to the paper's fails with probability 1.2 %, DMALA with 0.6
    %.
    """
    setup = readings.Setup(steps=None, chains=None, engine="auto", data_root=None, until=math.inf)
    graphs = 128 if (dataset, name, reading) in APART else 32
    [(_, values)] = readings.play(readings.Block(dataset, 0, graphs, ((name, reading),)), setup)
    published = published_row(dataset, f"sl_{name}")
    z = z_score(Spread.of(values.astype(float)), published, PUBLISHED[dataset].published_n)
    most = math.inf if name == "dmala" else LIMIT
    compare(f"{dataset} sl_{name}, {reading}", published.mean, values.mean(), z, most=most)
