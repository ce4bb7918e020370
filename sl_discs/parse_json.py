"""JSON from files that anybody may have written."""

from __future__ import annotations

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """What `json.loads` gives; ValueError also where lists stand in lists too deeply to be parsed."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("objects nested too deeply") from None
