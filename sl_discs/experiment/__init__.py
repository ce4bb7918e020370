"""Runs samplers on instances: annealing, the engine, batches, verification."""
