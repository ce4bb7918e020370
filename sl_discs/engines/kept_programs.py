"""Caches the programs that JAX compiles on disk for the next process.

JAX's own cache writes files in place, so another process may read an incomplete one. It also does not record the
processor that a program was compiled for, so machines of different kinds with a shared home folder may load programs
that they cannot run. Here JAX uses the project's cache instead.
"""

from __future__ import annotations

import hashlib

import jax
from jax._src import compilation_cache  # JAX only has an option for the folder

from sl_discs.cache import Cache

# Programs that compile faster are not worth a file.
_LEAST_S = 0.1


class _Programs:
    """The interface of JAX's cache; JAX's keys cover everything that a program depends on except the processor."""

    def __init__(self, cache: Cache):
        from llvmlite import binding  # imported here, as commands that only print their help do not need it

        self._cache = cache
        processor = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
        self._processor = hashlib.sha256(repr(processor).encode()).hexdigest()[:16]

    def _name(self, key: str) -> str:
        return f"{key}-{self._processor}.xla"

    def get(self, key: str) -> bytes | None:
        return self._cache.load(self._name(key))

    def put(self, key: str, value: bytes) -> None:
        self._cache.save(self._name(key), lambda file: file.write(value))


def keep_programs() -> None:
    """Installs the cache, before anything is compiled; has no effect if JAX's own cache has a folder."""
    if not compilation_cache.is_persistent_cache_enabled():
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_S)
        compilation_cache._cache = _Programs(Cache())  # type: ignore[assignment]
