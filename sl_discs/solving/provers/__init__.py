"""Provers: bounds and searches that need no chains, a file each."""
