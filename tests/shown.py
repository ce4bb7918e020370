"""Texts that are shown to users, which a person reads when they change.

They stand in files beside their tests. `SL_DISCS_WRITE=1 python -m pytest FILE` writes those anew.
"""

import os
from pathlib import Path


def check_shown(path: Path, texts: dict[str, str]) -> None:
    """Compares texts with those of the file, each below its name."""
    written = "\n\n".join(f"==== {name}\n{text.rstrip()}" for name, text in texts.items()) + "\n"
    if os.environ.get("SL_DISCS_WRITE"):
        path.write_text(written, encoding="utf-8")
    assert written == path.read_text(encoding="utf-8"), f"if it is better: SL_DISCS_WRITE=1, {path}"
