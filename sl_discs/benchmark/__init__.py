"""Benchmarks of this project's engines and of other packages' samplers on fixed cases, and their reports."""
