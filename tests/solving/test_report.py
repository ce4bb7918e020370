"""The page of a run: self-contained, with what it claims, and readable where it is looked at."""

import dataclasses
import re
import shutil
import subprocess
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest

import sl_discs
from sl_discs.sampling import report as draws
from sl_discs.solving import report
from sl_discs.solving.report import Run, verification, write_report

pytest.importorskip("matplotlib", reason="a report has plots")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Page(HTMLParser):
    """Tags in balance, and what they refer to."""

    VOID = ("meta", "br", "path", "use", "rect", "line", "polyline", "circle")

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.ids, self.links = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            self.ids += [value] if name == "id" else []
            self.links += [value] if name in ("src", "href", "xlink:href") else []

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def run():
    graph = nx.relabel_nodes(nx.gnp_random_graph(30, 0.2, seed=1), lambda node: f"<{node}>")
    problem = sl_discs.mis(graph, name="thirty & more")
    result = sl_discs.solve(problem, "sl_gwg", steps=600, chains=8, K=20, sigma=1.0)
    return Run(problem, result, (("file", "thirty.clq (dimacs)"),), 0.25)


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "run.html"
    return write_report(path, [run, run], "sl-discs solve 'a b.clq' --problem=mis")


def test_words_of_a_verdict_are_escaped(run, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "verification", lambda problem, result: (False, "violates <script>"))
    named = run._replace(result=dataclasses.replace(run.result, bound=12.0, bound_by="<script>"))
    text = write_report(tmp_path / "run.html", [named], "").read_text(encoding="utf-8")
    assert text.count("&lt;script&gt;") == 2 and "<script" not in text


@pytest.fixture(scope="module")
def page_of_draws(run, tmp_path_factory):
    """Of tempering, which has a ladder, and of populations."""
    path = tmp_path_factory.mktemp("report") / "draws.html"
    found = [sl_discs.sample(run.problem, 0.5, 64, method) for method in ("tempering", "population")]
    return draws.write_report(path, [draws.Run(one, run.given) for one in found], "sl-discs sample 'a b.clq'")


@pytest.mark.parametrize(("name", "plots"), [("page", 12), ("page_of_draws", 7 + 4)])
def test_one_page_that_needs_nothing_else(name, plots, request):
    text = request.getfixturevalue(name).read_text()
    parsed = Page(text)
    assert not parsed.open and parsed.seen.count("svg") == plots
    assert len(set(parsed.ids)) == len(parsed.ids), "identifiers of plots meet"
    assert all(link.startswith("#") and link[1:] in parsed.ids for link in parsed.links)
    assert all(name in parsed.ids for name in re.findall(r"url\(#([^)]+)\)", text))
    assert "<script" not in text and "@import" not in text


def test_it_says_what_was_found(page, run):
    text = page.read_text()
    assert f"<strong>{run.result.best_value:g}</strong>" in text and "✓ verified" in text
    assert "thirty &amp; more" in text and "thirty.clq (dimacs)" in text and "&lt;" in text
    assert "sl-discs solve &#x27;a b.clq&#x27; --problem=mis" in text


def test_it_says_whether_draws_are_reliable(page_of_draws):
    text = page_of_draws.read_text()
    assert "✗ NOT reliable: " in text and "✓ reliable" in text and "thirty &amp; more at temperature 0.5" in text
    assert all(f"<th>{title}</th>" in text for title in ("R-hat", "ESS tail", "overlap", "log Z", "P(x = 1)"))
    assert "swap acceptance" in text and "communication barrier" in text and "round trips" in text


def test_an_answer_that_does_not_hold_is_called_so(run):
    import dataclasses

    wrong = dataclasses.replace(run.result, values=run.result.values + 1)
    good, words = verification(run.problem, wrong)
    assert not good and "recomputed" in words


def test_contraction_goes_from_nothing_known_to_decided(run):
    found = run.result.contraction
    known = found.mean[np.isfinite(found.mean)]
    assert len(known) > 10 and (known >= 0).all() and (known <= 1).all()
    assert (np.diff(found.time) >= 0).all() and (np.diff(found.step) > 0).all()
    assert found.field[0] < 0.2 and found.field[-1] > 0.8


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium to look at the page with")
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("name", ["page", "page_of_draws"])
def test_nothing_is_cut_off_in_a_browser(name, request, tmp_path, width):
    """A phone and a desk: the page is as wide as the window, and not blank."""
    page = request.getfixturevalue(name)
    probe = tmp_path / "probe.html"
    script = "<script>document.title = [document.documentElement.scrollWidth, innerWidth].join(' ')</script>"
    probe.write_text(page.read_text().replace("</body>", script + "</body>"))
    flags = [
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},2000", "--hide-scrollbars",
    ]  # fmt: skip
    look = [CHROMIUM, *flags, "--dump-dom", probe.as_uri()]
    dom = subprocess.run(look, capture_output=True, text=True, timeout=120).stdout
    content, window = map(int, re.search(r"<title>(\d+) (\d+)</title>", dom).groups())
    assert content <= window
    shot = tmp_path / "shot.png"
    look = [CHROMIUM, *flags, f"--screenshot={shot}", page.as_uri()]
    subprocess.run(look, capture_output=True, timeout=120, check=True)
    from matplotlib.image import imread

    pixels = imread(shot)[..., :3]
    assert pixels.shape[1] == width and 0.01 < (pixels < 0.9).any(axis=2).mean() < 0.5
