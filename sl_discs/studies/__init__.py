"""Studies of localization that are not a table of the paper: its theory on a run, its convergence."""
