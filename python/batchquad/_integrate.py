"""The whole of it in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Unpack

from ._errors import Interrupted, InvalidInput
from ._evaluate import ExecutorLike
from ._likelihood import LogLikelihood
from ._prior import PriorLike
from ._progress import ProgressLike
from ._result import Result
from ._settings import BatchRule, FurtherSettings, OnFailure, Schedule, Settings, StartLike, Surrogate
from ._study import Study


def integrate(
    log_likelihood: LogLikelihood,
    prior: PriorLike,
    *,
    batch: int = 8,
    max_evaluations: int = 128,
    target_sd: float | None = None,
    repeats: int | None = None,
    seed: int = 0,
    executor: ExecutorLike = None,
    store: str | os.PathLike[str] | None = None,
    surrogate: Surrogate = "auto",
    batch_rule: BatchRule = "kriging-believer",
    schedule: Schedule = "batch",
    timeout: float | None = None,
    retries: int = 2,
    on_failure: OnFailure = "exclude",
    vectorized: bool = False,
    pass_dict: bool = False,
    progress: ProgressLike = None,
    initial: Any = None,
    start: StartLike | None = None,
    workers: int | None = None,
    n_jobs: int | None = None,
    resume: Result | None = None,
    labels: Mapping[str, str] | None = None,
    **settings: Unpack[FurtherSettings],
) -> Result:
    """The evidence of a model: the integral of its likelihood against its prior, from few evaluations.

    Args:
        log_likelihood: Takes a point, a 1-D array (or a dict of names to numbers, with ``pass_dict``), and returns the log-likelihood
            there: any real number, −∞ where the likelihood is zero. A noisy one returns ``(value, sd)``, the standard deviation of its noise.
            Anything but a number beside the value, ``(value, blob)`` or ``(value, sd, blob)``, is kept in ``Result.blobs``.
        prior: A dict of names to distributions (`Normal`, `Uniform`, …, frozen ``scipy.stats`` distributions, ``(low, high)``),
            a `MultivariateNormal`, or a `UnitCube`.
        batch: Points chosen together.
        max_evaluations: The run ends after so many.
        target_sd: … or when log Z is known to so much, in two batches in a row.
        repeats: So many independent runs, each with the limits above and a seed of its own, in the same store. Their values are pooled at the end,
            ``Result.repeats`` has each of them, and the verdict says whether they agree. By default one; a store or result that is resumed may
            get more of them, but not fewer.
        seed: The same seed, the same points.
        executor: Who evaluates: ``None`` this thread, a number so many processes of our own (a worker that dies or hangs is replaced),
            any ``concurrent.futures.Executor``, a Dask client, or a function without arguments that makes an executor.
        store: A directory in which everything is kept; the same call resumes it.
        surrogate: The belief about the likelihood: ``"log"`` is a Gaussian process on its logarithm, ``"wsabi-l"`` the paper's on its square
            root. ``"auto"`` is ``"log"`` for up to 12 parameters, unless a choice is made that only the others have (a kernel, another batch rule, …).
        batch_rule: How the points of a batch are kept apart.
        schedule: ``"batch"`` chooses when the whole batch is back (reproducible to the bit), ``"async"`` whenever a worker is free.
        timeout: Seconds for one evaluation; needs an executor.
        retries: How often an evaluation is tried again after a timeout or a lost worker. Other failures would repeat.
        on_failure: What becomes of a point that failed for good: left out (``"exclude"``), taken as likelihood zero on your word
            (``"as-zero"``), or the end of the run (``"abort"``).
        vectorized: ``log_likelihood`` takes all points of a batch at once, a row each, and returns as many values, or a tuple of values,
            standard deviations and blobs as above, each as many.
        pass_dict: ``log_likelihood`` takes a dict of names to numbers.
        progress: ``None`` shows a line in terminals and notebooks, ``True`` a line a minute in log files too; or a function of a `Progress`. A
            function that returns ``True`` or raises ``StopIteration`` ends the run, whose result is returned with the status
            ``"interrupted"``.
        initial: Evaluations made elsewhere: a table with a column for each parameter and ``log_likelihood``, or ``(points, values)``; with the
            standard deviations of noisy values in a column ``sd``, or ``(points, values, sds)``.
        start: Where the posterior may be: a point (a dict of names to numbers, or numbers in the order of the parameters), or a list of
            points. They are evaluated first. A good one saves evaluations; a wrong one costs one, and may slow the
            search at first.
        workers: How many evaluations an executor runs at the same time, where it does not say so itself.
        n_jobs: The same as ``executor`` with a number of processes; ``-1`` is one per core.
        resume: A result to go on from, with a larger budget for instance; a run with a store goes on by itself.
        labels: What plots and reports call the parameters, by name: with units, or formulas between dollar signs.
        **settings: All other settings, as in problem files.

    A raised exception, a NaN, a worker that dies are failures of one evaluation, never of the run. Ctrl-C raises `Interrupted`, which has
    the study with all that was evaluated.

    >>> from batchquad import Normal, integrate
    >>> result = integrate(lambda theta: -0.5 * theta @ theta, {"x": Normal(0, 1), "y": Normal(0, 1)}, max_evaluations=32)
    >>> abs(result.log_z - (-0.6931)) < 0.01   # ∫ exp(−|θ|²/2) N(θ; 0, I) dθ = ½
    True
    >>> result.status
    'budget'
    """
    choices = Settings(
        batch=batch,
        max_evaluations=max_evaluations,
        target_sd=target_sd,
        repeats=repeats,
        surrogate=surrogate,
        batch_rule=batch_rule,
        schedule=schedule,
        on_failure=on_failure,
        start=start,
        **settings,
    )
    if resume is None:
        study = Study(prior, store=store, seed=seed, labels=labels, **choices)
    elif store is not None:
        raise InvalidInput("resume and store are both given, expected one of them: a store is resumed by itself")
    else:
        study = resume._resumed(prior, seed, labels, choices)
    try:
        if initial is not None:
            study.import_evaluations(initial)
        result = study.run(
            log_likelihood,
            executor=executor,
            timeout=timeout,
            retries=retries,
            vectorized=vectorized,
            pass_dict=pass_dict,
            progress=progress,
            workers=workers,
            n_jobs=n_jobs,
        )
    except Interrupted:
        # In memory it is all there is; a store goes back, so that the same call resumes it.
        if study.store is not None:
            study.close()
        raise
    except BaseException:
        study.close()
        raise
    study.close()
    return result
