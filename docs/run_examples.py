"""A hook of MkDocs: each examples/NAME.py becomes the page examples/NAME.md with its code, output
and picture.

An example is run as `python examples/NAME.py picture.png`, so that a page can only show what the
code does. One that fails ends the build. The pictures of the gallery are drawn anew, by the code on
its page. SL_DISCS_RUN_EXAMPLES=false builds the pages without running anything, and with the
gallery's pictures as they are.
"""

import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]


def on_files(files, config):
    """Adds a page, and a picture, for each example."""
    for script in sorted((ROOT / "examples").glob("*.py")):
        code = script.read_text()
        title, _, text = ast.get_docstring(ast.parse(code)).partition("\n")
        # Without headings below the title, the place of their list is free for long lines of code.
        parts = ["---\nhide: [toc]\n---", f"# {title.rstrip('.')}", text.strip()]
        if config.extra["run_examples"]:
            printed, picture = _run(script)
            files.append(File.generated(config, f"examples/{script.stem}.png", content=picture))
            parts += [
                f"![{title}]({script.stem}.png)",
                f"It prints:\n\n```text\n{printed.strip()}\n```",
            ]
        body = code.split('"""', 2)[2].strip()
        parts.append(f"The code is in `examples/{script.name}`:\n\n```python\n{body}\n```")
        files.append(
            File.generated(config, f"examples/{script.stem}.md", content="\n\n".join(parts))
        )
    if config.extra["run_examples"]:
        for name, picture in _gallery().items():
            files.remove(files.src_uris[f"gallery/{name}"])
            files.append(File.generated(config, f"gallery/{name}", content=picture))
    return files


def _gallery() -> dict[str, bytes]:
    """The pictures that the gallery's Python code draws, by name."""
    codes = re.findall(r"```python\n(.*?)```", (ROOT / "docs/gallery.md").read_text(), re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        for code in codes:
            done = subprocess.run(
                [sys.executable, "-c", code],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise PluginError(f"gallery.md failed:\n{code}\n{done.stderr}")
        return {path.name: path.read_bytes() for path in Path(folder).glob("*.png")}


def _run(script: Path) -> tuple[str, bytes]:
    """What the example prints, and its picture."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.png"
        done = subprocess.run(
            [sys.executable, script, picture], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode or not picture.exists():
            raise PluginError(f"{script.name} failed:\n{done.stderr}")
        return done.stdout, picture.read_bytes()
