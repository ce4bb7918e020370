"""Chains on an engine: what `run`, `solve` and `sample` share."""
