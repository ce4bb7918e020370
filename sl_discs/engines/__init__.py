"""What plays the chains: one contract, and three engines that keep it.

An engine plays a `Program` on the `Chains` of a `Batch`; nothing else in the code knows which one runs.
"""
