"""Studies beyond the tables of the paper: its theory on a run, convergence, and where localization samples best."""
