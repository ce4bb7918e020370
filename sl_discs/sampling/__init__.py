"""Draws from exp(f/temperature) at one temperature, with the evidence that they are draws."""
