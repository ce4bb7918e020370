"""The engine for NVIDIA GPUs; its functions also compile for one lane of a CPU core, where they are
tested.
"""
