"""Studies beyond the paper's tables: its theory on actual runs, convergence, and where localization samples best."""
