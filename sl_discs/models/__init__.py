"""Targets on {0,1}^N: values, flip gains, and how they follow flips."""
