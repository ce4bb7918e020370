"""What may happen to a file."""

import json
import os
from pathlib import Path

import numpy as np


def _cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def _replace(path: Path) -> None:
    """By a file of another program, in the same format."""
    if path.suffix == ".npz":
        np.savez(path, part="gwg-0", x=np.ones(2))
    else:
        path.write_text('{"arguments": [1], "message": 3, "samplers": {"gwg": {}}}')


def _age(path: Path) -> None:
    """To a file of another version of this package: its format has another name, if it has one."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            arrays = dict(file)
        if "json" in arrays:
            text = json.loads(str(arrays["json"])) | {"format": "sl_discs of old"}
            arrays["json"] = np.array(json.dumps(text))
        np.savez(path, old=np.ones(1), **{k: v for k, v in arrays.items() if k == "json"})
    else:
        path.write_text("[]")


def _become(make):
    def become(path: Path) -> None:
        path.unlink()
        make(path)

    return become


DAMAGES = {
    "cut": _cut,
    "flipped": _flip,
    "empty": lambda path: path.write_bytes(b""),
    "nested": lambda path: path.write_text("[" * 100_000),
    "foreign": _replace,
    "of another version": _age,
    "a folder": _become(os.mkdir),
    "a pipe": _become(os.mkfifo),
}
