"""Refusals: what is called, what it raises, and the argument, line or flag that is named.

The sentences stand in sentences.txt, which a person reads when it changes:
`python tests/refusals/refusals.py` writes it anew. Lists of what is registered, such as samplers,
stand there by their titles.
"""

import contextlib
import io
import os
import shlex
import sys
import tempfile
import textwrap
import traceback
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from sl_discs.chains.annealing import SCHEDULES
from sl_discs.commands.main import main
from sl_discs.instances.formats import FORMATS, read_instances
from sl_discs.problems.kind import KINDS
from sl_discs.samplers import known_samplers
from sl_discs.support import memory, own_code
from sl_discs.support.checks import join_names
from sl_discs.support.errors import InputError

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sl_discs"
SENTENCES = Path(__file__).with_name("sentences.txt")
# Lists that grow with each entry of a registry, as they stand in sentences, and what stands for
# them in the file.
LISTS = {
    ", ".join(known_samplers()): "SAMPLERS",
    ", ".join(FORMATS): "FORMATS",
    join_names(FORMATS): "FORMATS",
    ", ".join(SCHEDULES): "SCHEDULES",
    ", ".join(KINDS): "PROBLEMS",
}


class Refusal(NamedTuple):
    """A call that is refused.

    Attributes:
      call: is given a folder of its own, which is the working directory.
      error: what it raises.
      named: the argument, the line of a file, or the flag with which the message begins.
    """

    call: Callable[[Path], object]
    error: type[InputError]
    named: str | int | None = None


class Refused(NamedTuple):
    """What was raised: its class, what it names, and its sentence."""

    error: type[Exception]
    named: str | int | None
    sentence: str


class ExitCode2(InputError):
    """How a command refuses: one line, nothing on stdout, and exit code 2."""


def read(content: str | bytes, format: str | None, problem: str | None) -> Callable[[Path], object]:
    """Reads a file of this content, in little memory."""

    def call(folder: Path) -> None:
        path = folder / "bad.any"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        tracemalloc.start()
        try:
            read_instances(path, format=format, problem=problem)
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < 2**27

    return call


def command(words: str, files: dict[str, str]) -> Callable[[Path], object]:
    """Runs `sl-discs WORDS` beside these files; CLONE is the folder of the repository."""

    def call(folder: Path) -> None:
        (folder / "folder.png").mkdir()
        for name, content in files.items():
            (folder / name).write_text(content)
        arguments = shlex.split(words.replace("CLONE", str(ROOT)))
        before = {*folder.rglob("*")}
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
            mock.patch.object(sys, "path", [*sys.path]),
            mock.patch.object(own_code, "_IMPORTED", {}),
            mock.patch.dict(os.environ, SL_DISCS_CACHE=str(folder / "cache")),
        ):
            code = main(["sl-discs", *arguments])
        said = err.getvalue()
        left = {path for path in folder.rglob("*") if "cache" not in path.parts}
        assert left == before, left
        assert code == 2 and not out.getvalue(), (code, out.getvalue(), said)
        assert said.startswith("error: ") and said.count("\n") == 1, said
        raise ExitCode2(said.removeprefix("error: ").rstrip("\n"))

    return call


def refused(refusal: Refusal, folder: Path) -> Refused:
    """Makes the call on a machine of 4 GiB; returns what it raises."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with (
            mock.patch.object(memory, "usable_memory", lambda: 4 * memory.GIB),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            refusal.call(folder)
    except InputError as error:
        return _refused(error, folder)
    finally:
        os.chdir(before)
    raise AssertionError("it is not refused")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields the exceptions of other programs that it was raised from, or while handling."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        frames = traceback.extract_tb(cause.__traceback__)
        in_package = Path(frames[-1].filename).is_relative_to(PACKAGE)
        is_own = in_package and type(cause) is ValueError and cause is not error.__cause__
        if not is_own and not isinstance(cause, InputError | KeyError):
            yield cause
        cause = cause.__cause__ or cause.__context__


def _refused(error: InputError, folder: Path) -> Refused:
    said = str(error)
    assert said.isprintable(), said
    # Words of other programs change with their versions.
    for cause in _causes(error):
        words = " ".join(str(cause).split())
        said = said.replace(words, "...") if len(words) > 1 else said
    said = said.replace(str(folder), "FOLDER").replace(str(ROOT), "CLONE")
    for names, title in LISTS.items():
        said = said.replace(names, title)
    named = error.argument
    place = said.removeprefix("FOLDER/bad.any:").partition(": ")[0]
    if place.isdigit():
        named = int(place)
    elif isinstance(error, ExitCode2) and said.startswith("--"):
        named = said.split()[0].partition("=")[0].rstrip(":")
    return Refused(type(error), named, said)


def sentences() -> dict[str, str]:
    """Returns the sentences of the file by the names of the refusals."""
    found = {}
    for paragraph in SENTENCES.read_text().split("\n\n"):
        name, *lines = paragraph.strip().splitlines()
        found[name] = " ".join(line.strip() for line in lines)
    return found


def words_of(sentence: str) -> str:
    """Returns a sentence as it is read from the file, where blanks stand for line breaks too."""
    return " ".join(sentence.split())


def write() -> None:
    """Writes the file anew."""
    from refused_calls import REFUSALS

    paragraphs = []
    for name, refusal in REFUSALS.items():
        with tempfile.TemporaryDirectory() as folder:
            sentence = words_of(refused(refusal, Path(folder).resolve()).sentence)
        lines = textwrap.wrap(sentence, 96, break_long_words=False, break_on_hyphens=False)
        paragraphs.append("\n".join([name, *(f"    {line}" for line in lines)]))
    SENTENCES.write_text("\n\n".join(paragraphs) + "\n")


if __name__ == "__main__":
    write()
