"""Growth and roofline: graphs as they are asked for, counts that follow the algorithm, commands as a whole."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from sl_discs.benchmark import growth

ENVIRONMENT = os.environ | {"JAX_PLATFORMS": "cpu"}


def run(cwd, *arguments):
    command = [sys.executable, "-m", "sl_discs", "bench", *arguments]
    return subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def test_random_graphs_have_the_degree_and_are_the_same_each_time():
    graph, again = growth.random_graph(3_000, 8), growth.random_graph(3_000, 8)
    assert graph.num_edges == 12_000
    np.testing.assert_array_equal(graph.edges, again.edges)


@pytest.mark.slow
def test_the_growth_command(tmp_path):
    chosen = ("--samplers=metropolis", "--engines=cpu", "--largest=100", "--chains=2")
    done = run(tmp_path, "growth", *chosen)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "growth.json").read_text())
    assert {point["num_sites"] for point in found["by_size"]} == {100}
    assert all(point["chain_steps_per_s"] > point["flips_per_s"] > 0 for point in found["by_degree"])
    assert (tmp_path / "growth.png").stat().st_size > 10_000
    refused = run(tmp_path, "growth", "--engines=cuda")
    assert refused.returncode == 2 and "--engines: 'cuda' is not available" in refused.stderr


def test_counts_grow_as_the_algorithm_does():
    from sl_discs.benchmark.roofline import Machine, least_seconds, space, work

    few = [work("cpu", sites, 1.0, 8.0, False) for sites in (1_000, 100_000)]
    assert few[0] == few[1]
    many = [work("cpu", sites, 40.0, 100.0, False) for sites in (1_000, 2_000)]
    assert many[1].num_bytes > 1.2 * many[0].num_bytes
    assert least_seconds(few[0], Machine(1e10, 1e11)) == few[0].operations / 1e10
    assert least_seconds(few[0], Machine(1e12, 1e9)) == few[0].num_bytes / 1e9
    assert space("reference", 640, 64) > 16 * space("cpu", 640, 64) == 16 * space("cpu", 640, 1)


def test_every_core_is_at_work_where_time_is_counted_by_cores(tmp_path):
    script = (
        "import jax; from sl_discs.commands import bench_roofline as command;"
        "command._rows = lambda *_: [f'{jax.device_count()} of {command.num_cores()}'];"
        "command.main(['bench roofline', '--cases=mis-er-0.05'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    devices, cores = done.stdout.splitlines()[-1].split(" of ")
    assert devices == cores, done.stderr


def test_the_roofline_command_refuses_what_it_has_no_counts_for(refusal):
    assert "'dmala' is not available" in refusal("bench", "roofline", "--samplers=dmala")
