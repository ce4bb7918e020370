"""The best value of a small problem, by enumeration of its states."""

from sl_discs.testing.conformance import all_states


def optimum(problem):
    """Of a problem on zeros and ones."""
    values = problem.evaluate(all_states(problem.num_variables)).values
    return values.max() if problem.maximise else values.min()
