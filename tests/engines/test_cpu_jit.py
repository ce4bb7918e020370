"""How the native loops are compiled."""

import llvmlite.binding as llvm
import numpy as np
import pytest

from sl_discs.engines.cpu.odds import product_of_odds


def test_loops_over_sites_use_the_longest_vectors_that_the_processor_has():
    """Goes red where a version of llvmlite or LLVM no longer takes the attribute."""
    if not llvm.get_host_cpu_features().get("avx512vl"):
        pytest.skip("this processor has no vectors of 512 bits")
    product_of_odds(np.ones(64, np.float32), 0, 64, 0.5)
    for assembly in product_of_odds.inspect_asm().values():
        assert "zmm" in assembly
