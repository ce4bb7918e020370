"""The examples in the docstrings of what users call first: they run, and print what is shown."""

import dataclasses
import doctest
import pkgutil
import warnings
from pathlib import Path
from unittest.mock import patch

import dimod
import jax
import jax.numpy as jnp
import networkx as nx
import pytest

import sl_discs
from sl_discs.localization.schedule import Localization
from sl_discs.models.keys import fold
from sl_discs.problems.kind import KINDS
from sl_discs.samplers.single_site import Gibbs
from sl_discs.testing.conformance import standard_cases

SHOWN = [
    *(
        f"sl_discs:{name}"
        for name in ("qubo", "ising", "maxcut", "mis", "maxclique", "vertex_cover", "read")
    ),
    *(
        f"sl_discs:{name}"
        for name in (
            "from_log_density",
            "Problem",
            "Problem.fix",
            "register_problem",
            "solve",
            "Result",
            "sample",
            "Samples",
            "Samples.expectation",
            "Experiment",
        )
    ),
    "sl_discs:from_bqm",
    *(f"sl_discs.models.model:{name}" for name in ("apply_flips", "Categories", "Model", "Target")),
    *(f"sl_discs.models.keys:{name}" for name in ("fold", "uniforms")),
    "sl_discs.localization.schedule:Localization",
    *(f"sl_discs.localization.algorithm:{name}" for name in ("Localized", "LocalizedState")),
    *(f"sl_discs.samplers.sampler:{name}" for name in ("Sampler", "Chain", "accept_or_keep")),
    "sl_discs.samplers.draws:draw_site",
    *(f"sl_discs.dimod:{name}" for name in ("SLSampler", "BoltzmannSampler")),
    *(
        f"sl_discs.blackjax:{name}"
        for name in ("algorithm", "localized", "DiscreteState", "LocalizedDiscreteState")
    ),
    "sl_discs.solving.reductions:presolve",
    *(f"sl_discs.testing.conformance:{name}" for name in ("check_convergence", "ConformanceError")),
    "sl_discs.samplers.registry:register_sampler",
    pytest.param("sl_discs.testing.conformance:check_sampler", marks=pytest.mark.slow),
]
GIVEN = {
    "sl_discs": sl_discs,
    "dataclasses": dataclasses,
    "dimod": dimod,
    "jax": jax,
    "nx": nx,
    "jnp": jnp,
    "Path": Path,
    "Gibbs": Gibbs,
    "Localization": Localization,
    "fold": fold,
    "standard_cases": standard_cases,
}


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.usefixtures("own_samplers")
def test_the_example_prints_what_is_shown(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = pkgutil.resolve_name(name)
    text = found.__doc__
    module = pkgutil.resolve_name(found.__module__)
    example = doctest.DocTestParser().get_doctest(text, vars(module) | GIVEN, name, None, None)
    assert example.examples, "no example"
    printed = []
    with patch.dict(KINDS), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failed = (
            doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
            .run(example, out=printed.append)
            .failed
        )
    assert not failed, "".join(printed)
