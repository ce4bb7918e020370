"""The chain's loop as one GPU kernel: a program a chain, whose state stays on the chip for many steps.

Functions here are written for one chain whose sites are padded to a power of two, in operations that Pallas's Triton
backend knows: whole vectors, reductions, prefix sums and loops. An element is picked by a sum over a vector that is
zero elsewhere; only the coupling's rows and the program are read by index. `jax.vmap` maps the same functions too.
"""
