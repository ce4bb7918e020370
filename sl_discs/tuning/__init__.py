"""The search for settings: space, trials on training instances, shared storage, and the report on test instances."""
