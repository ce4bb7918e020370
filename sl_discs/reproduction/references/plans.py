"""The length of the search for each published MaxCut set, based on measurements (see docs/references.md)."""

from __future__ import annotations

from sl_discs.reproduction.references.search import Search

PLANS = {
    "maxcut/er/r-er-0.15-n-256-300": Search(1_000_000, 16, 2, initial=2.0, final=0.4),
    "maxcut/er/r-er-0.15-n-512-600": Search(2_000_000, 16, 2, initial=2.8, final=0.55),
    "maxcut/er/r-er-0.15-n-1024-1100": Search(8_000_000, 16, 2, initial=4.0, final=0.8),
    "maxcut/ba/r-ba-4-n-256-300": Search(1_000_000, 16, 2, initial=0.8, final=0.3),
    "maxcut/ba/r-ba-4-n-512-600": Search(2_000_000, 16, 2, initial=1.0, final=0.28),
    "maxcut/ba/r-ba-4-n-1024-1100": Search(8_000_000, 16, 2, initial=1.4, final=0.25),
}
