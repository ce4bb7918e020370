"""What NumPy raises for an `.npz` file that is cut short or has a wrong bit somewhere."""

from __future__ import annotations

import tokenize
import zipfile
import zlib

# In order: of the archive, of what is packed in it, and of an array's header, which NumPy reads as Python source. The
# checksum of an array comes last.
DAMAGED_NPZ = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    KeyError,
    EOFError,
    zlib.error,
    ValueError,
    TypeError,
    SyntaxError,
    tokenize.TokenError,
    MemoryError,
)
