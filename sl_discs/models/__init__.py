"""Targets on {0,1}^N: values, flip gains, and their updates after flips."""
