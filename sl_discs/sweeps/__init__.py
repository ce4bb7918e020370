"""Sweep files in DISCS's format, and workers that share their runs."""
