"""The loop over steps as one GPU kernel, with one program per chain, whose state stays on the chip for many steps.

Functions here are written for one chain whose sites are padded to a power of two, in operations that Pallas's Triton
backend supports: whole vectors, reductions, prefix sums and loops. An element is selected by summing a vector that is
zero elsewhere; only the coupling's rows and the program are read by index. The functions also work under `jax.vmap`.
"""
