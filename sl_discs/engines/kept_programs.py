"""Programs that JAX has compiled, kept on disk for the next process.

JAX has such a cache of its own, whose files are written in place, so that another process may meet half of one, and
whose names do not say for which processor a program was compiled, so that clusters with one home folder for machines
of several kinds would run what some of them cannot. Here it keeps them in the project's cache.
"""

from __future__ import annotations

import hashlib

import jax
from jax._src import compilation_cache  # JAX lets choose the folder, not how files are kept

from sl_discs.cache import Cache

# Programs that take less are not worth a file each.
_LEAST_S = 0.1


class _Programs:
    """What JAX asks for a program, by a key that names everything else that it depends on."""

    def __init__(self, cache: Cache):
        from llvmlite import binding  # here, as commands that only print their help have no use for it

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
    """For commands, before anything is compiled; without effect where JAX has a folder for its own cache."""
    if not compilation_cache.is_persistent_cache_enabled():
        jax.config.update("jax_persistent_cache_min_compile_time_secs", _LEAST_S)
        compilation_cache._cache = _Programs(Cache())  # type: ignore[assignment]
