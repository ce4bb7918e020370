"""From a problem to its answer: default annealing, chains, rounds, and the result."""
