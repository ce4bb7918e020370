"""Sweep files of DISCS's form, and workers that share their runs."""
