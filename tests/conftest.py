"""Machine code of the native loops is compiled once for all tests and the commands that they run."""

import os
import tempfile

_FOLDER = tempfile.TemporaryDirectory(prefix="sl_discs-native-")
os.environ.setdefault("NUMBA_CACHE_DIR", _FOLDER.name)
