"""What all tests share: compiled native loops, and array arguments that are checked against their annotations."""

import os
import tempfile

from jaxtyping import install_import_hook

# Machine code of the native loops is compiled once for all tests and the commands that they run.
_FOLDER = tempfile.TemporaryDirectory(prefix="sl_discs-native-")
os.environ.setdefault("NUMBA_CACHE_DIR", _FOLDER.name)

# Modules that compute on arrays. Those that hold what Numba compiles or what users call with wrong arguments, to be
# told so in words, are left out.
CHECKED = [
    *("models", "samplers", "localization", "engines.contract", "engines.reference", "experiment"),
    *(f"solving.{name}" for name in ("answers", "collecting", "contraction", "recipe", "rounds", "stage", "storing")),
]
# Numbers are left out: the code checks settings itself, in words, and takes NumPy's numbers too.
NUMBERS = "beartype.FrozenDict({int: object, float: object})"
BEARTYPE = f"beartype.beartype(conf=beartype.BeartypeConf(hint_overrides={NUMBERS}))"
install_import_hook([f"sl_discs.{name}" for name in CHECKED], BEARTYPE)
