"""Hyperparameter search: its space, trials on training instances, shared storage, and a report on test instances."""
