"""The report in a folder: each subcommand writes its section, and report.md and report.json contain all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from sl_discs.atomic import write_atomically
from sl_discs.errors import InputError
from sl_discs.finished_work import Damaged, read_json, write_json

ORDER = ("main", "runtime", "ablation", "allocation", "trajectories")


class Section(NamedTuple):
    """The section of one subcommand.

    Attributes:
      text: its markdown.
      data: its part of report.json, with keys of its own.
      figures: names of PNG files beside the report.
    """

    text: str
    data: dict[str, Any]
    figures: list[str]


def write_report(folder: Path, sections: dict[str, Section], made_by: dict[str, Any]) -> tuple[Path, Path]:
    """Saves these sections, and writes report.md and report.json with those of earlier commands in this folder.

    Args:
      folder: of the report.
      sections: by name, see `ORDER`.
      made_by: how these sections were made: command, profile, commit, version.

    Raises:
      InputError: the folder cannot be written, or an earlier section cannot be read.
    """
    for name, section in sections.items():
        content = section._asdict() | {"made_by": made_by}
        write_json(folder / "sections" / f"{name}.json", content, allow_nan=False)
    kept = {name: _read(folder / "sections" / f"{name}.json") for name in ORDER}
    kept = {name: content for name, content in kept.items() if content is not None}
    blocks = ["# The paper's numbers beside ours"]
    report: dict[str, Any] = {"cells": [], "pairs": [], "made_by": {}}
    for name, content in kept.items():
        how = ", ".join(f"{key} {value}" for key, value in content["made_by"].items() if key != "command")
        figures = "".join(f"\n\n![{figure}]({figure})" for figure in content["figures"])
        blocks.append(f"{content['text']}{figures}\n\n`{content['made_by']['command']}`: {how}.")
        report |= content["data"]
        report["made_by"][name] = content["made_by"]
    text = "\n\n".join(blocks).encode() + b"\n"
    return (
        write_atomically(folder / "report.md", lambda file: file.write(text)),
        write_json(folder / "report.json", report, allow_nan=False),
    )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return read_json(path)
    except Damaged as error:
        raise InputError(f"{error}; remove it and run its command again") from error
