"""sl_discs as a plugin of DISCS: `register()` gives every sampler of DISCS a localized variant by
name.

    from sl_discs import discs_plugin
    discs_plugin.register(compat=True)

After that, in the same process, a config or a sweep of DISCS can use `sl_gwg`, `sl_path_auxiliary`
and so on for all of DISCS's samplers, and samplers of sl_discs as `sldiscs_gwg`, ... (`modules.py`
lists the names). DISCS's own files are not modified.

The bridges, of which localized samplers of DISCS (`LocalizedSampler`) and ours (`Localized`) need
no others:

|          | DISCS's in sl_discs                                         | sl_discs's in DISCS |
|----------|-------------------------------------------------------------|---------------------|
| models   | `BatchModel`; `AdaptedModel`, with a tilt, for its samplers | `TargetModel`       |
| samplers | `DiscsSampler`, a batch                                     | `OwnSampler`        |
"""

from __future__ import annotations

from sl_discs.discs_plugin import modules, upstream

__all__ = ["register"]


def register(*, compat: bool = False, fixes: bool = False) -> None:
    """Makes the plugin's samplers importable under DISCS's module names; may be called again.

    Args:
      compat: whether to supply, to DISCS only, what JAX and other packages have removed since 2023
        (`compat.py`).
      fixes: whether errors of DISCS's samplers are corrected in `sl_` samplers (`fixes.py`
        describes them). Samplers that were built earlier are not affected.

    Raises:
      InputError: `discs` is missing, or cannot be imported without `compat`.
    """
    upstream.import_discs(compat)
    modules.install(fixes)
