"""sl_discs as a plugin of DISCS: `register()`, and every sampler of DISCS has its localized variant by name.

    from sl_discs import discs_plugin
    discs_plugin.register(compat=True)

From then on a config, a sweep or a launch script of DISCS may name `sl_gwg`, `sl_path_auxiliary`, `sl_` and any other
sampler that DISCS has, and samplers and models of sl_discs as `sldiscs_gwg`, `sldiscs_mis`, ... (`modules.py` lists
the names). DISCS's own files stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from sl_discs.discs_plugin import compat as compatibility
from sl_discs.discs_plugin import modules, upstream
from sl_discs.discs_plugin.fixes import FIXES, chosen_fixes

__all__ = ["FIXES", "register"]


def register(*, compat: bool = False, fixes: bool | Iterable[str] = False) -> None:
    """Makes the plugin's samplers and models importable under DISCS's module names; may be called again.

    Args:
      compat: whether to supply, to DISCS alone, what JAX and others have removed since 2023 (`compat.py`).
      fixes: which of the laws that DISCS's samplers break are mended in `sl_` samplers: True for all, or names out of
        `FIXES` (`fixes.py` says what each does). Samplers that were built before keep theirs.

    Raises:
      InputError: `discs` is absent, too different, or cannot be imported without `compat`; an unknown fix.
    """
    chosen = chosen_fixes(fixes)
    upstream.require_discs()
    if compat:
        compatibility.install()
    upstream.check_discs()
    modules.install(chosen)
