"""The figure: a PNG with something in it, whatever the record holds, or a clear word when it cannot be."""

import builtins

import pytest

from sl_discs.errors import InputError
from sl_discs.experiment.figures import can_draw, new_figure, or_warn
from sl_discs.experiment.summary import draw_trajectories

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"names": ("gwg",), "num_instances": 1, "num_logged": 1},
        {"dataset": "maxcut/ba/r-ba-4-n-256-300", "references": [60.0, 61.0, 62.0, 63.0]},
        {"dataset": "maxclique/mine", "level": -5.0},
    ],
)
def test_a_png_with_content(make_record, tmp_path, arguments):
    from matplotlib.image import imread

    path = draw_trajectories(make_record(**arguments), tmp_path / "trajectory.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    pixels = imread(path)[..., :3]
    ink = (pixels.min(axis=2) < 0.9).mean()
    assert 0.005 < ink < 0.5
    assert (pixels.max(axis=2) - pixels.min(axis=2) > 0.3).any()
    assert list(tmp_path.iterdir()) == [path]


def test_without_matplotlib_the_extra_is_named(make_record, tmp_path, monkeypatch, capsys):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(name, name="matplotlib")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install -e '.\[run\]'"):
        draw_trajectories(make_record(), tmp_path / "trajectory.png")
    assert not can_draw() and "pip install" in capsys.readouterr().err


def test_a_figure_that_fails_is_a_warning(tmp_path, capsys):
    """Whatever it is that fails: the run that it belongs to is over, and its results are there."""

    def paint(figure):
        raise RuntimeError("two\nlines")

    assert can_draw() and not capsys.readouterr().err
    assert or_warn(lambda: new_figure((2, 2), paint)) is None
    assert capsys.readouterr().err == "warning: two lines; results are not affected\n"
    assert or_warn(lambda: tmp_path) == tmp_path and not capsys.readouterr().err


def test_names_are_not_tex(tmp_path):
    """In titles, legends, labels of ticks; and a logarithmic axis still has numbers."""
    name = r"$\frac$ of $ {"

    def paint(figure):
        axes = figure.subplots()
        axes.plot([1, 2], [1e-4, 1.0], label=name)
        axes.set(title=name, xlabel=name, yscale="log")
        axes.set_xticks([1, 2], [name, name])
        axes.legend()

    figure = new_figure((4, 3), paint)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == [name, name]
    assert any("1e" in label.get_text() for label in axes.get_yticklabels())
    assert not any("$" in label.get_text() for label in axes.get_yticklabels(which="both"))
