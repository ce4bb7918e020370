"""Two modes, drawn by low-rank localization.

200 spins are all coupled equally, in a weak field: most of them are up, or most of them are down. A
chain stays where it begins, so the share of its draws with most spins up is that of the starts.
`low_rank` observes the mean of all spins through noise, which separates the two modes, and draws
both with their weights. The exact law is a sum over the number of spins that are up.
"""

import sys

import numpy as np
from scipy.special import gammaln, softmax

import sl_discs
from sl_discs.support.figures import COLOURS, save_figure

N, COUPLING, FIELD = 200, 1.7, 0.003


def main(path: str) -> None:
    """Left: the mean spin of four chains, draw by draw. Right: how often each mean is drawn, and
    its exact law.
    """
    problem = sl_discs.ising(
        np.full(N, FIELD), np.triu(np.full((N, N), COUPLING / N), 1), maximise=True
    )
    up = np.arange(N + 1)
    mean = 2 * up / N - 1
    law = softmax(
        -gammaln(up + 1) - gammaln(N - up + 1) + N * (COUPLING * mean**2 / 2 + FIELD * mean)
    )
    print(f"exact: most spins are up with probability {law[mean > 0].sum():.3f}")

    means = {}
    for method in ("chain", "low_rank"):
        samples = sl_discs.sample(problem, temperature=1.0, draws=2000, method=method, seed=0)
        share = samples.expectation(lambda states: states.mean(axis=1) > 0.5)
        print(f"{method}: {share.mean:.3f} +- {share.error:.3f}; {samples.verdict}")
        means[method] = samples.group_magnetisations

    def paint(figure):
        traces, drawn = figure.subplots(1, 2)
        traces.plot(means["chain"][:4].T, linewidth=0.7)
        traces.set_title("chain: each stays in its mode")
        traces.set(xlabel="draw", ylabel="mean spin", ylim=(-1, 1))
        drawn.hist(
            means["low_rank"].ravel(), np.linspace(-1, 1, 51), density=True, color=COLOURS[0]
        )
        drawn.plot(mean, law * N / 2, color="black", linewidth=1, label="exact")
        drawn.set_title("low_rank: both modes")
        drawn.set(xlabel="mean spin", ylabel="density")
        drawn.legend()

    save_figure(path, (8.0, 3.2), paint)


if __name__ == "__main__":
    main(sys.argv[1])
