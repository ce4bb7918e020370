"""Draws from the problem in a file at a temperature, with evidence.

sl-discs sample FILE [--temperature=TAU[,TAU...]] [--problem=PROBLEM] [--draws=N]
    [--method=auto] [--time_limit=10] [--save=DRAWS.npz|MARGINALS.csv] [--plot=RUN.png]

A state x is drawn with probability proportional to exp(f(x)/TAU), where f is the value that the
problem maximises, or minus the value that it minimises; TAU is in units of that value. FILE is any
file that `sl-discs solve` reads. If it holds several problems, each is sampled, and the files to
write are numbered: DRAWS-1.npz, DRAWS-2.npz.

With several temperatures the draws are those of the lowest, and a second table, in the picture too,
has value, heat capacity, log Z and entropy in nats at each.

The table shows means with their standard errors, R-hat and effective sample sizes, and log Z where
the method gives it. The last line says whether the draws are reliable, and if not, why.
--save=MARGINALS.csv writes the probability of each variable with its standard error, and --plot
shows them as bars, or as a map where labels are rows and columns.

The exit code is 0 if all draws are reliable, 1 if some are not, and 2 after a one-line message
about bad input. Ctrl-C, SIGTERM and SIGUSR1 end the sampling: the draws so far are printed and
saved, marked as interrupted, and the exit code is 128 plus the signal number, so 130 after Ctrl-C.
"""

import dataclasses
import functools
import signal
from pathlib import Path

from sl_discs.commands import problem_file
from sl_discs.commands.command import Command, Given, define_arguments, own_flags
from sl_discs.commands.problem_file import numbered
from sl_discs.samplers.registry import base_samplers
from sl_discs.sampling.draw_samples import SampleOptions, drawn_from, sample
from sl_discs.sampling.samples import Samples, numbers, summary_lines
from sl_discs.support.figures import or_warn
from sl_discs.support.signals import notice_of_end
from sl_discs.support.terminal import aligned, printable, say

FLAGS, define = own_flags()

_STOPPING = (
    "\nstopping with the draws made so far; a second signal ends at once and saves nothing\n"
)

ARGUMENTS = define_arguments(FLAGS, sample, {"sampler": base_samplers()})
problem_file.define_flags(define)
define.integer(
    "top", 20, "Number of marginals to print, those nearest to 1/2 first.", lower_bound=0
)
define.string(
    "save",
    None,
    "File to write: .npz for the draws, see sl_discs.Samples.load; .csv for the marginals.",
)
define.string("plot", None, "Figure to write, .png.")


def _sample(given: Given) -> int:
    options, problems, read_s = problem_file.opened(
        FLAGS, Path(given.arguments[0]), SampleOptions, ARGUMENTS, [".npz", ".csv"]
    )
    drawn: list[Samples] = []
    with notice_of_end(signal.SIGINT, said=_STOPPING) as notice:
        options = dataclasses.replace(options, interrupt=lambda: notice.given)
        for number, (problem, line) in enumerate(problems, start=1):
            temperatures = options.temperatures or (options.lowest,)
            say(f"{line}; temperature {', '.join(f'{value:.12g}' for value in temperatures)}")
            files = {
                name: numbered(FLAGS[name].value, number, len(problems))
                for name in ("save", "plot")
            }
            samples = drawn_from(problem, options)
            drawn.append(samples)
            say(_summary(samples, read_s, FLAGS.top))
            if files["save"]:
                say(f"saved: {samples.save(files['save'])}")
            if files["plot"] and (plot := or_warn(functools.partial(samples.plot, files["plot"]))):
                say(f"plot: {plot}")
            if notice.given:
                break
        interrupted = len(drawn) < len(problems) or drawn[-1].interrupted
        if len(drawn) < len(problems):
            say(f"Interrupted: {len(drawn)} of {len(problems)} problems have draws.")
    for samples in drawn:
        say(printable(f"{samples.name}: {samples.verdict}"))
    if interrupted:
        return 128 + notice.signal
    return 0 if all(samples.reliable for samples in drawn) else 1


def _marginal_lines(samples: Samples, top: int) -> list[str]:
    marginals = sorted(samples.marginals.items(), key=lambda row: abs(row[1].mean - 0.5))
    rows = [(str(label), *numbers(marginal)) for label, marginal in marginals[:top]]
    lines = aligned([("variable", "P(x = 1)", "error"), *rows])
    left_out = (
        [f"  (the {top} of {len(marginals):,} variables nearest to 1/2)"]
        if len(marginals) > top
        else []
    )
    return lines + left_out


def _summary(samples: Samples, read_s: float, top: int) -> str:
    lines = [*summary_lines(samples), *(["", *_marginal_lines(samples, top)] if top else [])]
    parts = {"compile_s": "compiling", "draw_s": "drawing", "evaluate_s": "evidence"}
    return "\n".join([*lines, "", f"  {problem_file.seconds(read_s, samples.seconds, parts)}"])


main = Command("FILE", __doc__, FLAGS, _sample)
