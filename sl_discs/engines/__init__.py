"""The engines that run the chains: one contract and three implementations.

An engine runs a `Program` on the `ChainStates` of a `Batch`; nothing else in the code knows which
one runs.
"""
