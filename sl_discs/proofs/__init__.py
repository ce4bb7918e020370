"""Proofs: bounds that no answer passes, and exact searches that close the gap to the best answer."""
