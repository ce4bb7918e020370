"""Each study's command in small: it writes its page, and goes on from its finished cells to the
same page.
"""

import dataclasses
import importlib

import pytest
from marks import slow_except

import claim
import claim_plan
import convergence
import energy
import samplers
import theory

MIS = "--datasets=mis/er_density/r-0.10"
CUT = "maxcut/er/r-er-0.15-n-256-300"
TINY_CLAIM = dataclasses.replace(
    claim_plan.SIZES["smoke"], block=2, rounds=1, trials=2, rungs=((1, 2), (2, 1)), chosen=(2, 2)
)
# The module, its page, arguments, and the size that takes the place of the full one where no flag
# sets it.
COMMANDS = {
    "claim": ("report.md", [MIS, "--samplers=path_auxiliary", "--arms=defaults,null"], TINY_CLAIM),
    "tilt": ("tilt.md", [MIS, "--samplers=gwg", "--graphs=2", "--steps=2000"], None),
    "convergence": ("convergence.md", [], convergence.Size(200, (2, 4), (1, 2), 4, (3,))),
    "energy": ("energy.md", ["--seeds=1"], energy.Size(4, 2, (3, 3), 1, 2)),
    "best_known": (
        f"{CUT.replace('/', '_')}_seed0.json",
        [f"--datasets={CUT}", "--instances=2", "--steps=200", "--chains=2"],
        None,
    ),
    "field": ("report.md", ["--datasets=mis/rb/r-200", "--instances=1"], None),
    "laws": (
        "laws.md",
        ["--targets=strip-smoke", "--methods=gibbs,tempering", "--seeds=2", "--seconds=.01,.02"],
        None,
    ),
    "samplers": (
        "samplers.md",
        ["--samplers=metropolis", "--cases=mis-er-0.05"],
        samplers.Size((), 200, 0.001, 4, 1, 2, 8, 2),
    ),
    "theory": ("theory.md", [], theory.Size((1, 2), 4, 3, (3, 2, 2), 3, 2, 50, 6, 3, 40, ())),
    "verdicts": ("verdicts.md", ["--seeds=1", "--targets=hot torus", "--methods=chain"], None),
}


@pytest.mark.parametrize("name", slow_except(COMMANDS, ("convergence", "samplers", "verdicts")))
def test_a_command_goes_on_from_its_cells_to_the_same_page(name, tmp_path, monkeypatch, capsys):
    page, arguments, small = COMMANDS[name]
    module = importlib.import_module(name)
    if name == "claim":
        monkeypatch.setitem(claim.SIZES, "smoke", small)
    elif small is not None:
        monkeypatch.setattr(module, "FULL", small)
        monkeypatch.setattr(module.run, "__defaults__", (small,))
    folder = f"--folder={tmp_path}" if name == "best_known" else f"--output={tmp_path}"

    def run():
        code, said = (
            module.main([f"studies/{name}.py", *arguments, folder]),
            capsys.readouterr().err,
        )
        if code == 2 and "pip install" in said:
            pytest.skip(said)
        assert code == 0, said
        return (tmp_path / page).read_bytes()

    first = run()
    cells = sorted(path for path in tmp_path.rglob("*.json") if path.parent != tmp_path)
    for path in (
        cells[::2] if name in ("convergence", "theory", "claim") else ()
    ):  # no times on their pages
        path.unlink()
    assert run() == first
    assert sorted(path for path in tmp_path.rglob("*.json") if path.parent != tmp_path) == cells
