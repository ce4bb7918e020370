"""How the native loops are compiled."""

import llvmlite.binding as llvm
import numpy as np
import pytest

from sl_discs.engines.cpu.arithmetic import product_of_odds
from sl_discs.engines.cpu.jit import from_python


def test_loops_over_sites_use_the_longest_vectors_that_the_processor_has():
    """Goes red where a version of llvmlite or LLVM no longer takes the attribute."""
    if not llvm.get_host_cpu_features().get("avx512vl"):
        pytest.skip("this processor has no vectors of 512 bits")
    product = from_python(product_of_odds)
    product(np.ones(64, np.float32), 0, 64, 0.5)
    for assembly in product.inspect_asm().values():
        assert "zmm" in assembly
