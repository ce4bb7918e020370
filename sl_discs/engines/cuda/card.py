"""A GPU with instances in its memory, and the kernels that it runs, which are kept in files for
later processes.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from sl_discs.engines.arrays import ChainArrays, Records
from sl_discs.engines.compiled import announced, compiled, digest_of_sources
from sl_discs.engines.cuda.play import Instances, Numbers, Steps, make_kernel, outside
from sl_discs.engines.cuda.registers import KernelKind
from sl_discs.engines.cuda.warp import WIDTH, gpu, import_cuda
from sl_discs.support.cache import cache_folder, checked, or_no_cache, read_checked, warn_once
from sl_discs.support.errors import InputError
from sl_discs.support.files import write_atomically
from sl_discs.support.memory import format_bytes


class KernelStore:
    """Machine code of a kernel on disk, a file for each kind of card, in the place of numba-cuda's
    own cache.

    That one keeps the kernels of all kinds in one index, which it writes without a lock: of two
    processes that compile at once, one could find the other's kernel under its own key. The
    interface is private to numba-cuda. Where a version lacks it, kernels are compiled anew in each
    process, and a warning says so.

    Args:
      kind: of the kernel.
      warps: of a chain.
    """

    def __init__(self, kind: KernelKind, warps: int):
        name = kind._replace(step=f"{kind.step.__module__}.{kind.step.__name__}")  # type: ignore[arg-type]
        self._name = kind.step.__name__.removeprefix("make_")
        self._kind = (repr(name), warps)
        self._is_asked = False

    def check_use(self) -> None:
        """Says once if a kernel was compiled and nobody asked for its file."""
        if not self._is_asked:
            self._warn("it has another interface")

    def _warn(self, reason: object) -> None:
        from numba_cuda import __version__

        warn_once(
            f"kernels are compiled anew in each process: with numba-cuda {__version__}, {reason}"
        )

    def path(self, signature: Any, versions: tuple) -> Path | None:
        """Returns the file of a kernel with these types of arguments, compiled by these versions
        for this card.
        """
        folder = cache_folder(part=f"cuda-{digest_of_sources(Path(__file__))[:16]}")
        key = hashlib.sha256(repr((self._kind, signature, versions)).encode()).hexdigest()
        return None if folder is None else folder / f"{self._name}-{key[:16]}.kernel"

    def load(self, path: Path) -> tuple[str, bytes] | None:
        """Returns the name of the kernel's entry and its machine code; None if there is none or it
        is damaged.
        """
        name, separator, code = (read_checked(path) or b"").partition(b"\0")
        return (name.decode(), code) if separator else None

    def save(self, path: Path, name: str, code: bytes) -> None:
        """Keeps a kernel, see `load`."""
        with or_no_cache(path.parent.parent):
            write_atomically(path, lambda file: file.write(checked(name.encode() + b"\0" + code)))

    # What numba-cuda calls.

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Returns the compiled kernel; None if there is none yet."""
        self._is_asked = True
        try:
            versions = versions_of(context.codegen())
            path = self.path(signature, versions)
            loaded = None if path is None else self.load(path)
            return loaded and rebuilt(signature, *loaded, capability=versions[-1])
        # In private parts of numba-cuda that differ from those that were tried.
        except Exception as error:
            self._warn(f"{type(error).__name__}: {error}")
            return None

    def save_overload(self, signature: Any, kernel: Any) -> None:
        """Keeps a compiled kernel."""
        try:
            versions = versions_of(kernel.target_context.codegen())
            name = kernel.entry_name
            code = bytes(kernel.library.get_cubin(versions[-1]).code)
        except Exception as error:
            self._warn(f"{type(error).__name__}: {error}")
            return
        path = self.path(signature, versions)
        if path is not None:
            self.save(path, name, code)


def versions_of(codegen: Any) -> tuple:
    """Returns the versions of what compiles kernels, and the compute capability of the card."""
    import numba
    from numba_cuda import __version__

    return numba.__version__, __version__, *codegen.magic_tuple()


def rebuilt(signature: Any, name: str, code: bytes, capability: tuple[int, int]) -> Any:
    """Returns numba-cuda's kernel of machine code.

    Args:
      signature: types of the arguments.
      name: of the entry.
      code: cubin for cards of the capability.
      capability: such as (9, 0).
    """
    # numba-cuda's modules, where type checkers would find numba's.
    codegen, dispatcher, types = (
        import_module(f"numba.cuda.{name}") for name in ("codegen", "dispatcher", "types")
    )
    cubin = import_module("cuda.core").ObjectCode.from_cubin(code)
    library = codegen.CUDACodeLibrary._rebuild(
        codegen=None,
        name=name,
        entry_name=name,
        llvm_strs=None,
        ptx_cache={},
        cubin_cache={capability: cubin},
        linkerinfo_cache={},
        max_registers=None,
        nvvm_options={},
        needs_cudadevrt=False,
        nrt=False,
        use_cooperative=False,
        lto=False,
    )
    return dispatcher._Kernel._rebuild(
        cooperative=False,
        name=name,
        signature=types.void(*getattr(signature, "args", signature)),
        codelibrary=library,
        debug=False,
        lineinfo=False,
        call_helper=None,
        extensions=[],
    )


@functools.cache
def kernel_of(kind: KernelKind, warps: int) -> tuple[Any, KernelStore]:
    """Returns the kernel of a kind, and the store in which it is looked up."""
    kernel = make_kernel(import_cuda(), gpu(warps), kind)
    store = KernelStore(kind, warps)
    kernel._cache = store
    return kernel, store


def num_bytes(*groups: Iterable[Any]) -> int:
    """Returns the bytes of all arrays in some groups."""
    return sum(np.asarray(leaf).nbytes for group in groups for leaf in group)


class Card:
    """A GPU, with some of the instances in its memory.

    Args:
      number: of the card.
      threads: lanes of a chain.
      instances: that it plays chains of.

    Raises:
      InputError: they do not fit into its memory.
    """

    def __init__(self, number: int, threads: int, instances: Instances):
        self._cuda = import_cuda()
        self._number = number
        self._threads = threads
        with self._cuda.gpus[number]:
            advice = "lower config.experiment.instances_per_batch, or choose engine=cpu"
            self._check(f"{len(instances.scale)} instances need", num_bytes(instances), advice)
            self._instances = self._put(instances)

    def _check(self, what: str, needed: int, advice: str) -> None:
        context = self._cuda.current_context()
        free, _ = context.get_memory_info()
        if needed > free:
            # Of arrays that are gone, some wait to be freed together.
            context.deallocations.clear()
            free, _ = context.get_memory_info()
        if needed > free:
            there = f"GPU {self._number}, which has {format_bytes(free)} free"
            raise InputError(f"{what} {format_bytes(needed)} on {there}; {advice}")

    def _put(self, group: Any) -> Any:
        return type(group)(
            *(self._cuda.to_device(leaf) if np.ndim(leaf) else leaf for leaf in group)
        )

    def begin(
        self,
        kind: KernelKind,
        numbers: Numbers,
        chains: ChainArrays,
        steps: Steps,
        records: Records,
        per_instance: int,
    ) -> tuple[ChainArrays, Steps, Records]:
        """Begins to play chains, `per_instance` of each instance, by a kernel of this kind,
        compiled if it is new.

        Returns what `end` waits for.

        Raises:
          InputError: the chains and their records do not fit into the card's memory.
        """
        kernel, store = kernel_of(kind, self._threads // WIDTH)
        shape = len(chains.x), len(outside(kind, self._threads)), chains.x.shape[1]
        with self._cuda.gpus[self._number]:
            needed = num_bytes(chains, steps, records) + 4 * int(np.prod(shape))
            advice = "give fewer chains, log less often, or choose engine=cpu"
            self._check(f"{len(chains.x)} chains of a batch and their records need", needed, advice)
            played = self._put(chains), self._put(steps), self._put(records)
            launch = kernel[len(chains.x), self._threads]
            nothing = self._put(Records(*(leaf[:0] for leaf in records)))
            memory = self._cuda.device_array(shape, np.float32)

            def compile_kernel():
                launch(
                    numbers, self._instances, *played[:2], nothing, memory, np.int32(per_instance)
                )
                store.check_use()
                return True

            compiled(("cuda", kernel, self._number), lambda: announced(compile_kernel))
            launch(numbers, self._instances, *played, memory, np.int32(per_instance))
            return played

    def end(self, played: tuple[ChainArrays, Steps, Records]) -> tuple[ChainArrays, Records]:
        """Returns the chains and their records when they have been played."""
        with self._cuda.gpus[self._number]:
            chains, _, records = played
            return (
                ChainArrays(*(leaf.copy_to_host() for leaf in chains)),
                Records(*(leaf.copy_to_host() for leaf in records)),
            )
