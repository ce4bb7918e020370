"""The user's own Python code, such as the definition of a sampler, that a command imports before
anything else.
"""

import hashlib
import importlib
import importlib.util
import re
import sys
import traceback
import types
from pathlib import Path

from sl_discs.support.errors import InputError

# What was imported, as it was given -> SHA-256 of its file.
_IMPORTED: dict[str, str] = {}


def import_code(source: str) -> None:
    """Imports a Python file, such as `samplers/mine.py`, or module, such as `mine.samplers`, once.

    What the code imports is also looked for in the file's folder, and a module in the working
    directory, after all other places. InputError if it does not exist, or raises an error.
    """
    module = _file(source) if source.endswith(".py") or "/" in source else _module(source)
    path = getattr(module, "__file__", None)
    _IMPORTED[source] = hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""


def imported() -> dict[str, str]:
    """Returns what was imported, as it was given and in this order, with the SHA-256 of each file.

    Results depend on these files as they depend on the version of a package.
    """
    return dict(_IMPORTED)


def _file(source: str) -> types.ModuleType:
    path = Path(source).resolve()
    if not path.is_file():
        raise InputError(f"--import={source}: there is no such file")
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"--import={source}: not a Python file, whose name ends in .py")
    known = importlib.util.find_spec(name)
    if known is not None and (known.origin is None or Path(known.origin).resolve() != path):
        raise InputError(f"--import={source}: there already is a module {name}; rename the file")
    if name in sys.modules:
        return sys.modules[name]
    _look_in(path.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it while its code runs
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InputError(f"--import={source}: {error_of_file(error)}") from error
    return module


def _module(source: str) -> types.ModuleType:
    _look_in(Path.cwd())
    try:
        return importlib.import_module(source)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"--import={source}: {error_of_file(error)}; expected FILE.py or a module's name"
        ) from error


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def error_of_file(error: BaseException) -> str:
    """Returns in words an error that a file of Python raised, with the line that did."""
    missing = re.search(r"Attempted \[Relative path\]:\s+(\S+)\s+\[Errno 2\]", str(error))
    if missing:
        return (
            f"there is no file {missing[1]} in {Path.cwd()}; the folder configs/ is in the clone "
            "of sl_discs, so run the command there, or give the whole path"
        )
    if isinstance(error, (OSError, ImportError, SyntaxError, ValueError)):
        return " ".join(str(error).split())
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}: {type(error).__name__}: {' '.join(str(error).split())}"
