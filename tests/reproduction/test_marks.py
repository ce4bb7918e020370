"""Marks count only what was not chosen on the test graphs, and only where references are the same."""

from sl_discs.reproduction.comparisons import MARKS, marks_rows, marks_text


def row(dataset, method, protocol, mean, ours=False):
    return {
        "dataset": dataset, "method": method, "protocol": protocol, "ours": {"mean": mean, "se": 0.1, "n": 8},
        "reference_is_ours": ours, "chain_length": 10_000,
    }  # fmt: skip


def test_marks():
    density, cuts = "mis/er_density/r-0.10", "maxcut/ba/r-ba-4-n-1024-1100"
    cells = [
        row(density, "gwg", "defaults", MARKS[density] - 0.5),
        row(density, "path_auxiliary", "held out", MARKS[density] - 0.05),
        row(density, "sl_gwg", "as published", MARKS[density] + 5),
        row(cuts, "gwg", "defaults", 99.5, ours=True),
        row("maxclique/rb", "gwg", "defaults", MARKS["maxclique/rb"] - 0.2),
        row("maxclique/twitter", "gwg", "defaults", 100.0),
        row("mis/satlib", "gwg", "defaults", None),
    ]
    rows = {one["dataset"]: one for one in marks_rows(cells)}
    assert set(rows) == {density, cuts, "maxclique/rb"}
    assert rows[density]["method"] == "path_auxiliary" and rows[density]["reached"] is True
    assert rows["maxclique/rb"]["reached"] is False
    assert rows[cuts]["reached"] is None and rows[cuts]["distance"] == -0.5
    assert marks_text(list(rows.values())).count("\n| m") == 3 and not marks_text([])
