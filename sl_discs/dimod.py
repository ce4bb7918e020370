"""dimod samplers; `SLSampler` replaces `dwave.samplers.SimulatedAnnealingSampler` with any sampler
of this package.

    sampleset = SLSampler().sample(bqm, num_reads=32, seed=0)

`BoltzmannSampler` draws at a fixed temperature, with evidence on the quality of the draws in
`info`:

    sampleset = BoltzmannSampler().sample(bqm, beta=2.0, num_reads=1000, seed=0)

Energies are dimod's: at inverse temperature beta, the probability of a state is proportional to
exp(-beta energy).
"""

import inspect
import random
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from jaxtyping import Float64

from sl_discs.chains.annealing import checked_terms, temperature_range
from sl_discs.support.checks import boolean, integer, one_of, real, real_array, shown, text
from sl_discs.support.errors import InputError, MissingExtra

try:
    import dimod
except ImportError as error:
    raise MissingExtra(
        "sl_discs.dimod needs dimod; install it with: pip install -e '.[dimod]' in the clone"
    ) from error

from sl_discs.localization.method import Method
from sl_discs.problems import Problem
from sl_discs.problems.forms import from_bqm
from sl_discs.samplers.single_site import RANDOM, SEQUENTIAL
from sl_discs.sampling.draw_samples import METHODS
from sl_discs.sampling.draw_samples import sample as sample_at
from sl_discs.solving.options import AUTO, SolveOptions
from sl_discs.solving.result import Result
from sl_discs.solving.solver import solve

if TYPE_CHECKING:
    from dimod.typing import SamplesLike
else:  # Anything else gets an `InputError`.
    SamplesLike = object

SCHEDULES = ("linear", "geometric", "custom")
CRITERIA = {"Metropolis": "metropolis", "Gibbs": "gibbs"}
NUM_SWEEPS = 1_000
# The temperature that represents beta = 0, in units of the largest bias: every flip is accepted
# there.
_HOT = 1e9
# Of info["timing"].
_TIMES = (
    "preprocessing_ns",
    "compilation_ns",
    "sampling_ns",
    "postprocessing_ns",
)


class _Sampler(dimod.Sampler):
    # Arguments of `sample` with their property and its values.
    _OPTIONS: ClassVar[dict[str, tuple[str, tuple[str, ...]]]]

    @property
    def parameters(self) -> dict[str, list[str]]:
        """The arguments of `sample`, and the properties that describe them."""
        names = [
            name
            for name in inspect.signature(self.sample).parameters
            if name not in ("bqm", "kwargs")
        ]
        return {name: [self._OPTIONS[name][0]] if name in self._OPTIONS else [] for name in names}

    @property
    def properties(self) -> dict[str, Any]:
        """The allowed values of some arguments."""
        return dict(self._OPTIONS.values())

    def _checked(self, bqm: Any, seed: int | None, unknown: Mapping[str, object]) -> int:
        """Checks the model, warns of unknown arguments, and returns the seed, a new one for
        None.
        """
        self.remove_unknown_kwargs(**unknown)
        if not isinstance(bqm, dimod.BinaryQuadraticModel):
            raise InputError(
                f"a {type(bqm).__name__} where a dimod BinaryQuadraticModel is expected"
            )
        return random.getrandbits(32) if seed is None else integer("seed", seed, bits=32)


class BoltzmannSampler(_Sampler):
    """Draws from p(x) ~ exp(-beta energy(x)) by `sl_discs.sample`.

    Example:
        >>> bqm = dimod.BinaryQuadraticModel({"a": -1, "b": -1}, {("a", "b"): 3}, "BINARY")
        >>> reads = BoltzmannSampler().sample(bqm, beta=2.0, num_reads=100, seed=0)
        >>> log_z, error = reads.info["log_z"]
        >>> len(reads), reads.info["reliable"], round(log_z, 4)
        (100, True, 2.7672)

    `info` holds the evidence on the draws, `sl_discs.Samples.summary`. The draws of `SLSampler` are
    the lowest states that chains visited, which have no such law.
    """

    _OPTIONS: ClassVar = {"method": ("method_options", (AUTO, *METHODS))}

    def sample(
        self,
        bqm: dimod.BinaryQuadraticModel,
        beta: float = 1.0,
        num_reads: int = 1000,
        method: str = AUTO,
        seed: int | None = None,
        time_limit: float | None = None,
        interrupt_function: Callable[[], bool] | None = None,
        *,
        sampler: str = AUTO,
        groups: int | None = None,
        engine: str = "auto",
        sampler_fields: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> dimod.SampleSet:
        """Draws at an inverse temperature.

        Arguments that are not listed are those of `sl_discs.sample`.

        Args:
          bqm: BINARY or SPIN, any labels, possibly empty.
          beta: above 0.
          num_reads: exact number of reads; if a time limit or an interruption leaves fewer draws,
            some are repeated.
          seed: from 0 to 2^32 - 1; None: a new one, which `info` names.
          interrupt_function: called repeatedly without arguments; True ends the run.
          sampler_fields: of the sampler's config.
          **kwargs: ignored, with a warning.

        Returns:
          reads with their exact energies. `info` holds beta and `sl_discs.Samples.summary` of all
          draws, from which the reads are chosen evenly: `reliable`, the `reasons` against it,
          `log_z`, which is log sum exp(-beta energy) with its standard error or None, and more.

        Raises:
          InputError: an argument is wrong.
        """
        seed = self._checked(bqm, seed, kwargs)
        beta = real("beta", beta, above=0)
        num_reads = integer("num_reads", num_reads, 1, bits=31)
        temperature = real("1/beta", 1 / beta)
        if not bqm.num_variables:
            info = {
                "beta": beta,
                "seed": seed,
                "reliable": True,
                "reasons": [],
                "log_z": [-beta * bqm.offset, 0.0],
            }
            return _reads(bqm, np.empty((num_reads, 0), np.int8), info)
        fields = _fields(sampler_fields)
        drawn = sample_at(
            from_bqm(bqm),
            temperature,
            num_reads if time_limit is None else None,
            method,
            seed=seed,
            time_limit=time_limit,
            sampler=sampler,
            interrupt=interrupt_function,
            groups=groups,
            engine=engine,
            **fields,
        )
        points = (
            (np.arange(num_reads) + np.random.default_rng(seed).random()) * len(drawn) / num_reads
        )
        chosen = np.minimum(points.astype(int), len(drawn) - 1)
        return _reads(bqm, drawn.states[chosen], {"beta": beta} | drawn.summary())


class SLSampler(_Sampler, dimod.Initialized):
    """Anneals chains of a discrete MCMC sampler, localized or not; each read is one chain.

    Example:
        >>> bqm = dimod.BinaryQuadraticModel({"a": -1, "b": -1}, {("a", "b"): 3}, "BINARY")
        >>> reads = SLSampler().sample(bqm, num_reads=4, seed=0)
        >>> float(reads.first.energy)
        -1.0

    It takes the arguments of `dwave.samplers.SimulatedAnnealingSampler`, of which it can take the
    place, and by `sampler` and `sampler_fields` any registered sampler of this package.
    """

    _OPTIONS: ClassVar = {"beta_schedule_type": ("beta_schedule_options", SCHEDULES)}

    def sample(
        self,
        bqm: dimod.BinaryQuadraticModel,
        beta_range: Sequence[float] | None = None,
        num_reads: int | None = None,
        num_sweeps: int | None = None,
        num_sweeps_per_beta: int = 1,
        beta_schedule_type: str = "geometric",
        seed: int | None = None,
        interrupt_function: Callable[[], bool] | None = None,
        beta_schedule: Sequence[float] | None = None,
        initial_states: SamplesLike | None = None,
        initial_states_generator: Literal["none", "tile", "random"] = "random",
        randomize_order: bool = False,
        proposal_acceptance_criteria: str | None = None,
        *,
        sampler: str = AUTO,
        time_limit: float | None = None,
        engine: str = "auto",
        sampler_fields: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> dimod.SampleSet:
        """Anneals; a read is the lowest state that a chain visited, so no draw at the last inverse
        temperature.

        The arguments up to `proposal_acceptance_criteria` are those of
        `dwave.samplers.SimulatedAnnealingSampler`, `sampler`, `time_limit` and `engine` those of
        `sl_discs.solve`.

        Args:
          bqm: to be minimised; BINARY or SPIN, any labels, possibly empty.
          beta_range: first and last inverse temperature; None: from the model's gains.
          num_reads: number of chains; None: the number of initial states, otherwise 1.
          num_sweeps: of each chain; a sweep is one step per variable for samplers that try one or
            two a step, such as `metropolis`, and a step for those that consider all variables.
            None: 1,000, or the default of the latter.
          num_sweeps_per_beta: sweeps at each inverse temperature.
          beta_schedule_type: `linear` or `geometric` between the ends of beta_range; or `custom`,
            with beta_schedule.
          seed: from 0 to 2^32 - 1; None: a new one, which `info` names.
          interrupt_function: called without arguments between calls to the engine; True ends the
            run.
          beta_schedule: only with `custom`: a sequence of inverse temperatures of at least 0.
          initial_states: samples-like, one per read.
          initial_states_generator: `none`, `tile` or `random`, as in dimod's `Initialized`.
          randomize_order: whether `metropolis` and `gibbs` try a random variable at each step;
            otherwise they repeat the variables in order.
          proposal_acceptance_criteria: `Metropolis` or `Gibbs`, an alternative to `sampler`.
          sampler_fields: of the sampler's config, such as {"K": 128, "sigma": 4.0} for localized
            ones.
          **kwargs: ignored, with a warning.

        Returns:
          reads with their exact energies; `info` holds beta_range, beta_schedule_type, sampler,
          engine, seed, steps and timing in nanoseconds.

        Raises:
          InputError: an argument is wrong.

        Warns:
          UserWarning: all inverse temperatures given are equal, which `BoltzmannSampler` draws at.
        """
        begin = time.perf_counter_ns()
        seed = self._checked(bqm, seed, kwargs)
        method = _method(sampler, proposal_acceptance_criteria, engine)
        fields = _ordered(method, randomize_order) | _fields(sampler_fields)
        count = None if num_sweeps is None else integer("num_sweeps", num_sweeps, 1)
        problem = from_bqm(bqm) if bqm.num_variables else None
        betas = _betas(
            problem, beta_range, num_sweeps, num_sweeps_per_beta, beta_schedule_type, beta_schedule
        )
        if num_reads is not None:
            integer("num_reads", num_reads, 1, bits=31)
        try:
            parsed = self.parse_initial_states(
                bqm, initial_states, initial_states_generator, num_reads, seed
            )
        except (TypeError, ValueError) as error:
            raise InputError(
                f"initial_states, initial_states_generator or num_reads: {error}"
            ) from None
        ends = [float(betas[0]), float(betas[-1])]
        schedule = beta_schedule if beta_range is None else beta_range
        if schedule is not None and np.ptp(_given("beta", schedule)) == 0:
            warnings.warn(
                f"all sweeps are at beta = {ends[0]:g}, and reads are the lowest states visited, "
                "not draws; use BoltzmannSampler for draws",
                stacklevel=2,
            )
        info = {
            "beta_range": ends,
            "beta_schedule_type": beta_schedule_type,
            "sampler": method.name,
            "seed": seed,
        }
        if problem is None:
            info |= {"engine": "none", "steps": 0, "timing": dict.fromkeys(_TIMES, 0)}
            return _reads(bqm, np.empty((parsed.num_reads, 0), np.int8), info)
        if beta_schedule is not None:
            count = len(betas) * num_sweeps_per_beta
        if count is not None:
            count *= bqm.num_variables if method.sampler.counts_sweeps else 1
        begun = None
        if initial_states is not None:
            order = [parsed.initial_states.variables.index(label) for label in bqm.variables]
            begun = parsed.initial_states.record.sample[:, order]
        temperatures = 1 / np.maximum(
            betas, 1 / (_HOT * max(1.0, checked_terms(problem.name, problem.terms()).largest()))
        )
        result = solve(
            problem,
            method.name,
            steps=count,
            time_limit=time_limit,
            chains=parsed.num_reads,
            initial_states=begun,
            annealing={"t_schedule": temperatures},
            engine=engine,
            seed=seed,
            interrupt=interrupt_function,
            proofs=False,  # a SampleSet has no bound
            **fields,
        )
        sampled = time.perf_counter_ns()
        reads = _reads(bqm, result.states, info)
        timing = _timing(begin, sampled, result)
        reads.info.update(engine=result.engine, steps=result.steps, timing=timing)
        return reads


def _fields(sampler_fields: Any) -> dict[str, Any]:
    fields = sampler_fields or {}
    if not isinstance(fields, Mapping) or not all(isinstance(name, str) for name in fields):
        raise InputError(f"sampler_fields is {shown(sampler_fields)}; expected values by name")
    return dict(fields)


def _reads(bqm: dimod.BinaryQuadraticModel, states: Any, info: dict[str, Any]) -> dimod.SampleSet:
    return dimod.SampleSet.from_samples_bqm((states, list(bqm.variables)), bqm, info=info)


def _ordered(method: Method, randomize: bool) -> dict[str, Any]:
    """Returns the field that says whether the sampler tries variables at random; none if it has no
    order.
    """
    if "scan" in method.fields:
        return {"scan": RANDOM if boolean("randomize_order", randomize) else SEQUENTIAL}
    if boolean("randomize_order", randomize):
        raise InputError(
            f"randomize_order is True; {method.name} has no order of variables, so leave it out"
        )
    return {}


def _timing(begin: int, sampled: int, result: Result) -> dict[str, int]:
    sampling, compiling = (int(1e9 * result.timing[key]) for key in ("run_s", "compile_s"))
    preparing = sampled - begin - sampling - compiling
    polishing = time.perf_counter_ns() - sampled
    return dict(zip(_TIMES, (preparing, compiling, sampling, polishing), strict=True))


def _method(sampler: str, criterion: str | None, engine: str) -> Method:
    """Returns the sampler of this name, or of the criterion, with its default fields."""
    if criterion is not None:
        one_of("proposal_acceptance_criteria", criterion, CRITERIA)
        if text("sampler", sampler) not in (AUTO, CRITERIA[criterion]):
            raise InputError(
                f"proposal_acceptance_criteria and sampler={sampler!r} are both given; give one of "
                "them"
            )
        sampler = CRITERIA[criterion]
    return SolveOptions(sampler, engine=engine).built


def _betas(
    problem: Problem | None, beta_range, num_sweeps, each: int, kind: str, schedule
) -> Float64[np.ndarray, "B"]:
    """Returns inverse temperatures, each for `each` sweeps."""
    each = integer("num_sweeps_per_beta", each, 1)
    one_of("beta_schedule_type", kind, SCHEDULES)
    if (kind == "custom") != (schedule is not None):
        raise InputError(
            "beta_schedule and beta_schedule_type='custom' go together; give both or none of them"
        )
    if kind == "custom":
        betas = _given("beta_schedule", schedule)
        if num_sweeps not in (None, len(betas) * each):
            raise InputError(
                f"num_sweeps is {num_sweeps}, but beta_schedule has {len(betas)} x {each} sweeps"
            )
        if beta_range is not None and tuple(_given("beta_range", beta_range)) != (
            betas[0],
            betas[-1],
        ):
            raise InputError("beta_range is not that of beta_schedule; leave it out")
        return betas
    count, left = divmod(NUM_SWEEPS if num_sweeps is None else num_sweeps, each)
    if left and num_sweeps is not None:
        raise InputError(
            f"num_sweeps is {num_sweeps}; expected a multiple of num_sweeps_per_beta = {each}"
        )
    if beta_range is not None:
        ends = _given("beta_range", beta_range)
    elif problem is None:
        ends = np.ones(2)
    else:
        ends = 1 / np.array(temperature_range(checked_terms(problem.name, problem.terms())))
    if len(ends) != 2 or (kind == "geometric" and not ends.all()):
        raise InputError(
            f"beta_range is {shown(beta_range)}; expected two numbers, above 0 in a geometric "
            "schedule"
        )
    if count <= 1:
        return ends[1:]
    first, last = ends
    return np.linspace(first, last, count) if kind == "linear" else np.geomspace(first, last, count)


def _given(name: str, betas: object) -> Float64[np.ndarray, "B"]:
    array = real_array(name, betas)
    if array.ndim != 1 or not len(array) or not (np.isfinite(array) & (array >= 0)).all():
        raise InputError(
            f"{name} is {shown(betas)}; expected finite inverse temperatures, at least 0"
        )
    return array
