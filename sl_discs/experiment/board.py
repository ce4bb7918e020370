"""What all hosts of a run see: named bytes in the key-value store of JAX's coordination service."""

from __future__ import annotations

from typing import Any

_ROOT = "sl_discs"


class Board:
    """Named bytes; names are paths such as `sign/3`."""

    def __init__(self, client: Any):
        """`client` is that of `jax.distributed`, whose calls raise RuntimeError where the service is gone."""
        self._client = client

    def put(self, name: str, content: bytes) -> None:
        """Replaces what was there."""
        self._client.key_value_set_bytes(f"{_ROOT}/{name}", content, allow_overwrite=True)

    def get(self, name: str, timeout_s: float = 60.0) -> bytes:
        """What is there; waits for something to be."""
        return self._client.blocking_key_value_get_bytes(f"{_ROOT}/{name}", int(1000 * timeout_s))

    def under(self, folder: str) -> dict[str, bytes]:
        """All that is in a folder."""
        prefix = f"{_ROOT}/{folder}/"
        found = self._client.key_value_dir_get_bytes(prefix)
        return {key.removeprefix(prefix): content for key, content in found}
