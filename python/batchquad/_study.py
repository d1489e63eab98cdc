"""A run, step by step: ask, tell, estimate."""

from __future__ import annotations

import json
import math
import os
import threading
import warnings
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ._batchquad import Prior, Session
from ._drive import Driver, recall_blobs, record_blob
from ._errors import InvalidInput, interrupted
from ._evaluate import ExecutorLike, evaluator
from ._jobs import with_jobs
from ._likelihood import LogLikelihood, NotANumber, apart, to_number
from ._prior import PriorLike, as_prior
from ._progress import Display, ProgressLike
from ._result import Result, make_result, sd_column
from ._settings import Settings, to_json, whole, with_start


class Estimate(NamedTuple):
    """What is believed about the evidence."""

    log_z: float
    log_z_sd: float


@dataclass(frozen=True, eq=False)
class Job:
    """One evaluation that somebody is to carry out."""

    #: Its number, by which it is answered.
    id: int
    #: The point, one value per parameter, and the same by name.
    theta: np.ndarray
    parameters: dict[str, float]
    #: For the likelihood's own randomness: the same for a point whenever it is evaluated.
    seed: int


class Study:
    """A run, step by step: ask for points, tell what came of them, estimate.

    With a ``store``, a directory, every answer is on the disk before it counts, and the same call resumes it; the program `batchquad`
    opens the same store. Without one everything is kept in memory.

    >>> from batchquad import Study, Uniform
    >>> study = Study({"x": Uniform(-5, 5)}, max_evaluations=16)
    >>> while jobs := study.ask():
    ...     for job in jobs:
    ...         study.tell(job, -0.5 * job.parameters["x"] ** 2)
    >>> study.result().status
    'budget'
    >>> bool(abs(study.estimate().log_z - np.log(np.sqrt(2 * np.pi) / 10)) < 0.01)
    True
    """

    def __init__(
        self,
        prior: PriorLike,
        *,
        store: str | os.PathLike[str] | None = None,
        seed: int | None = None,
        labels: Mapping[str, str] | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        seed = None if seed is None else whole("seed", seed)
        native = as_prior(prior)
        settings_given = to_json(with_start(settings, native.names))
        self._adopt(Session(native, settings_given, seed, None if store is None else os.fspath(store)), native)
        if labels is not None:
            self.label(labels)

    @classmethod
    def open(cls, store: str | os.PathLike[str]) -> Self:
        """The run in a store, with the prior and the settings that it holds.

        A prior made of functions cannot be held: give it again, ``Study(prior, store=…)``.
        """
        return cls._of(Session.open(os.fspath(store)), None)

    @classmethod
    def _of(cls, session: Session, prior: Prior | None) -> Self:
        study = cls.__new__(cls)
        study._adopt(session, prior)
        return study

    def _adopt(self, session: Session, prior: Prior | None) -> None:
        self._session, self._prior = session, prior
        self._running = threading.Lock()
        self._blobs = recall_blobs(session)
        if session.remark is not None:
            warnings.warn(session.remark, stacklevel=4)
        _OPEN.add(self)

    @property
    def names(self) -> list[str]:
        """The names of the parameters, in order."""
        return self._session.names

    @property
    def store(self) -> str | None:
        """The directory of the store, if there is one."""
        path = self._session.path
        return None if path is None else os.fspath(path)

    @property
    def settings(self) -> dict[str, Any]:
        """All choices of the run as they are now."""
        settings: dict[str, Any] = json.loads(self._session.settings)
        return settings

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self._session.seed

    def change(self, **settings: Unpack[Settings]) -> None:
        """Changes settings, a larger budget for instance; the change is recorded."""
        self._session.change(to_json(with_start({**self.settings, **settings}, self.names)))

    def label(self, labels: Mapping[str, str]) -> None:
        """What plots and reports are to call the parameters: labels by name, with units, or formulas between dollar signs."""
        unknown = [name for name in labels if name not in self.names]
        if unknown:
            raise InvalidInput(f"label for {unknown[0]!r}, expected one of the parameters {', '.join(self.names)}")
        self._session.label(json.dumps({name: str(label) for name, label in labels.items()}))

    def ask(self, n: int | None = None) -> list[Job]:
        """Up to ``n`` points (by default a batch) to be evaluated by whomever. None when a rule says that the run is over.

        Points asked and not answered are avoided, so asking again before telling gives other ones.
        """
        jobs, _ = self._session.ask(self.settings["batch"] if n is None else whole("n", n))
        return self._jobs(jobs)

    def pending(self) -> list[Job]:
        """The jobs that were asked and not answered."""
        return self._jobs(self._session.pending())

    def tell(
        self,
        job: Job | int,
        value: Any,
        *,
        sd: float | None = None,
        blob: Any = None,
        seconds: float = 0.0,
        worker: str | None = None,
        replace: bool = False,
    ) -> None:
        """Records a log-likelihood: a real number, or −∞ where the likelihood is zero. NaN and +∞ are recorded as failures.

        ``sd`` is the standard deviation of its noise, where it is known; ``value`` may also be what a function returned, ``(value, sd)``,
        ``(value, blob)`` or ``(value, sd, blob)``.

        Telling the same again changes nothing. A different value for the same job is kept and flagged; the first counts, with a warning.
        Where both came with an ``sd``, or the run has a ``noise_sd``, both count, by their precision. A value for a job that had failed counts
        from now on. With ``replace`` the value counts in place of all before, which were a mistake and are kept in the record.
        """
        id = _id_of(job)
        value, own_sd, own_blob = apart(value)
        sd, blob = own_sd if sd is None else sd, own_blob if blob is None else blob
        try:
            number = to_number(value)
            noise = None if sd is None else to_number(sd, "sd")
        except NotANumber as error:
            raise InvalidInput(str(error).replace("the log-likelihood returned", "value is")) from None
        if noise is not None and not 0 <= noise < math.inf:
            raise InvalidInput(f"sd is {sd!r}, expected a finite number >= 0")
        self._session.attempts(id)
        record_blob(self._session, self._blobs, id, blob)
        applied, _ = self._session.tell(id, number, seconds=float(seconds), worker=worker, sd=noise, replace=replace)
        if applied == "conflict":
            message = f"evaluation {id} has another value already: this one is kept and flagged, the first counts (replace=True lets this one count)"
            warnings.warn(message, stacklevel=2)

    def fail(
        self,
        job: Job | int,
        message: str = "",
        *,
        kind: str = "exception",
        seconds: float = 0.0,
        worker: str | None = None,
        replace: bool = False,
    ) -> None:
        """Records that a job could not be evaluated, and why. ``kind`` is one of the failure kinds; ``replace`` takes back a value."""
        self._session.fail(_id_of(job), kind, str(message), seconds=float(seconds), worker=worker, replace=replace)

    def import_evaluations(self, points: Any, values: ArrayLike | None = None, sds: ArrayLike | None = None) -> int:
        """Takes in evaluations made elsewhere, and says how many were new.

        ``points`` is an array with a row for each of the ``values``; or, alone, a table (a dict of columns, a data frame) with a column
        for each parameter and one named ``log_likelihood``. Noisy values come with their standard deviations: ``sds``, or a column ``sd`` of
        the table; NaN where there is none.
        """
        if values is None:
            theta, logs, noise = self._table(points)
        else:
            theta, logs, noise = _arrays(points, values, sds)
        return self._session.import_rows(theta, logs, noise)

    def estimate(self) -> Estimate:
        """log Z and its standard deviation given all values so far. Raises `NoEvidence` when no finite value is known."""
        return Estimate(*self._session.estimate())

    def result(self) -> Result:
        """All that is known so far."""
        return self._result(self._session.standing())

    def run(
        self,
        log_likelihood: LogLikelihood,
        *,
        executor: ExecutorLike = None,
        timeout: float | None = None,
        retries: int = 2,
        vectorized: bool = False,
        pass_dict: bool = False,
        progress: ProgressLike = None,
        workers: int | None = None,
        n_jobs: int | None = None,
    ) -> Result:
        """Evaluates to the end; what was asked and never answered comes first. The arguments are those of `integrate`."""
        if not self._running.acquire(blocking=False):
            raise InvalidInput("the study is being run in another thread, expected one run at a time")
        try:
            names = self.names if pass_dict else None
            executor = with_jobs(executor, n_jobs, timeout)
            who = evaluator(
                executor,
                log_likelihood,
                names,
                vectorized=vectorized,
                timeout=timeout,
                workers=workers,
                batch=self.settings["batch"],
            )
            driver = Driver(self._session, who, whole("retries", retries), Display(progress), self._blobs)
            return self._result(driver.run())
        except KeyboardInterrupt:
            raise interrupted(self) from None
        finally:
            self._running.release()

    def close(self) -> None:
        """Gives up the store, so that somebody else may have it. What was found can still be read."""
        self._session.close()
        _OPEN.discard(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        done, most, failed, _ = self._session.progress()
        store = f", store={self.store!r}" if self.store else ""
        return f"Study({', '.join(self.names)}: {done} of {most} evaluations, {failed} failed, {len(self._session.pending())} pending{store})"

    def _result(self, ending: tuple[str, str] | None) -> Result:
        return make_result(self._session, ending, self._blobs, self._prior)

    def _jobs(self, jobs: list[tuple[int, np.ndarray, int]]) -> list[Job]:
        names = self.names
        return [Job(id, theta, dict(zip(names, theta.tolist(), strict=True)), seed) for id, theta, seed in jobs]

    def _table(self, table: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        wanted = [*self.names, "log_likelihood"]
        if isinstance(table, tuple) and len(table) in (2, 3):
            return _arrays(*table)
        if not isinstance(table, Mapping) and not hasattr(table, "columns"):
            raise InvalidInput(
                f"evaluations made elsewhere are {type(table).__name__}, expected a table with the columns {', '.join(wanted)}"
            )
        missing = [name for name in wanted if name not in table]
        if missing:
            raise InvalidInput(f"the column {missing[0]!r} is missing, expected {', '.join(wanted)}")
        columns = [np.asarray(table[name], dtype=float) for name in wanted]
        # Rows without a value: evaluations that failed, in a table of ours.
        known = ~np.isnan(columns[-1])
        noise = sd_column(self.names)
        sds = np.asarray(table[noise], dtype=float)[known] if noise in table else None
        return _arrays(np.stack(columns[:-1], axis=1)[known], columns[-1][known], sds)


def _arrays(points: Any, values: Any, sds: Any = None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Evaluations made elsewhere as the core has them."""
    theta = np.ascontiguousarray(np.atleast_2d(np.asarray(points, dtype=float)))
    logs = np.ascontiguousarray(np.atleast_1d(np.asarray(values, dtype=float)))
    return theta, logs, None if sds is None else np.ascontiguousarray(np.atleast_1d(np.asarray(sds, dtype=float)))


def _id_of(job: Job | int) -> int:
    return job.id if isinstance(job, Job) else whole("job", job)


#: Studies whose stores a forked child must let go: a lock ends only when every process that inherited it has closed it.
_OPEN: weakref.WeakSet[Study] = weakref.WeakSet()
#: The sessions of those that are open while this process forks.
_FORKING: list[Session] = []


def _before_fork() -> None:
    _FORKING.extend(study._session for study in list(_OPEN))
    for session in _FORKING:
        session.before_fork()


def _after_fork() -> None:
    while _FORKING:
        _FORKING.pop().after_fork()


def _disinherit() -> None:
    while _FORKING:
        _FORKING.pop().disinherit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_disinherit)
