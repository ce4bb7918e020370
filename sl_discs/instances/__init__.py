"""Problem instances: DISCS's own files, portable archives and seeded generators, all of which
produce a `Graph` or a `QuadraticForm`.

`__init__.pyi` lists the public names, which are imported on first use: who makes a QUBO from a dict
reads no files.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
