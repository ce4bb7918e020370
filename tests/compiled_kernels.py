"""Kernels of the engine `cuda`, compiled for cards that are not there; needs numba-cuda's
compiler.
"""

import functools
import re
import types

import numpy as np

from sl_discs.engines.arrays import ChainArrays, Records
from sl_discs.engines.cuda import registers as chain
from sl_discs.engines.cuda import running_sums
from sl_discs.engines.cuda.cuda_engine import numbers_of
from sl_discs.engines.cuda.play import Instances, Steps, make_kernel
from sl_discs.engines.cuda.warp import gpu, import_cuda
from sl_discs.samplers.path import GWG


def stand_in(monkeypatch, capability):
    """Lets numba-cuda believe in a card: device functions ask for its capability when they are
    compiled.
    """
    from numba.cuda import dispatcher
    from numba.cuda.codegen import JITCUDACodegen
    from numba.cuda.cudadrv import devices

    device = types.SimpleNamespace(compute_capability=capability, id=0)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    monkeypatch.setattr(devices, "get_context", lambda *_: types.SimpleNamespace(device=device))
    monkeypatch.setattr(JITCUDACodegen, "magic_tuple", lambda self: ((13, 0), capability))
    for cached in (
        gpu,
        chain.make_chain,
        chain.make_random,
        chain.adapted,
        running_sums.make_running_sums,
    ):
        cached.cache_clear()


def argument_types(whole):
    """The types of a kernel's arguments."""
    from numba.cuda.typing.typeof import typeof

    numbers = numbers_of(GWG())
    f4, i4, i1, u4 = (
        lambda n, dtype=dtype: np.zeros((1,) * n, dtype) for dtype in ("f4", "i4", "i1", "u4")
    )
    instances = Instances(
        (u4 if whole else f4)(2), f4(2), f4(1), i1(2), i4(2), i4(1), np.int32(1), np.int32(1)
    )
    chains = ChainArrays(
        u4(2), u4(2), i1(2), f4(2), f4(1), f4(1), f4(1), i4(1), f4(2), f4(2), f4(1), i1(2), f4(1), i1(2)
    )  # fmt: skip
    one = np.int32(1)
    steps = Steps(f4(2), one, one, one, f4(1), i4(1), i4(1), f4(1), f4(1))
    found = Records(f4(2), f4(2), f4(2), np.zeros((1, 1), bool), i1(3))
    return tuple(map(typeof, (numbers, instances, chains, steps, found, f4(3), one)))


def compiled_for(monkeypatch, kind, warps, capability):
    """A kernel as numba-cuda makes it, the types of its arguments, and the context that it was
    compiled in.
    """
    from numba.cuda.dispatcher import _Kernel

    stand_in(monkeypatch, capability)
    made, signature = make_kernel(import_cuda(), gpu(warps), kind), argument_types(kind.whole)
    kernel = _Kernel(made.py_func, signature, **made.targetoptions)
    return kernel, signature, kernel.target_context


@functools.cache
def _ptx(kind, warps, capability):
    cuda = import_cuda()
    made = make_kernel(cuda, gpu(warps), kind)
    code, _ = cuda.compile(
        made.py_func,
        argument_types(kind.whole),
        cc=capability,
        fastmath=True,
        device=False,
        abi="numba",
        output="ptx",
        launch_bounds=made.targetoptions["launch_bounds"],
    )
    return code if isinstance(code, str) else code.decode()


def ptx_of(monkeypatch, kind, warps=1, capability=(9, 0)):
    """The PTX of a kernel."""
    stand_in(monkeypatch, capability)
    return _ptx(kind, warps, capability)


def sizes(ptx, pattern):
    """The sum of the numbers that a pattern finds."""
    return sum(int(size) for size in re.findall(pattern, ptx))
