"""A small package in the place of DISCS, with its calling conventions and no line of it."""
