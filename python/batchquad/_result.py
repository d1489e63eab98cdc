"""What a run found."""

from __future__ import annotations

import functools
import json
import math
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ._batchquad import Belief, Marginal, Prior, Session, clean, rounded
from ._diagnosis import Diagnosis
from ._errors import InvalidInput, NoEvidence, StoreError
from ._expectation import Expectation, Predicted
from ._files import write_whole
from ._prior import PriorLike, as_prior
from ._settings import Settings, to_json, whole, with_start
from ._table import Table
from ._text import facts, html_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._study import Study

#: The format of files with results.
_FORMAT = "result 1"

#: Weighted draws behind an expectation.
_DRAWS = 4096


class Result:
    """The evidence of a model, and everything that came with it.

    A result does not change any more, whatever becomes of the study that made it.
    """

    def __init__(
        self,
        found: dict[str, Any],
        belief: Belief | None,
        blobs: dict[int, Any],
        journal: bytes | None = None,
        prior: Prior | None = None,
    ) -> None:
        report: dict[str, Any] = found["report"]
        self._found, self._report, self._belief = found, report, belief
        self._journal, self._prior = journal, prior
        #: ``"converged"``, ``"budget"``, ``"stalled"``, ``"failed"``, ``"interrupted"`` by the progress function, or ``"unfinished"`` while
        #: there is more to do.
        self.status: str = report["status"]
        #: The same in words.
        self.reason: str = clean(report["reason"])
        #: The names of the parameters, in order.
        self.names: list[str] = found["names"]
        #: The directory of the store, if there is one.
        self.store: str | None = report.get("store")
        #: What the likelihood returned beside its value, by evaluation id.
        self.blobs: dict[int, Any] = dict(blobs)
        #: The seed of the run.
        self.seed: int = report["seed"]
        #: All choices of the run.
        self.settings: dict[str, Any] = found["settings"]
        #: Numerical repairs behind the estimate, counted.
        self.repairs: dict[str, Any] | None = report.get("repairs")
        #: The share of the prior that is nearer to a point whose evaluation failed than to any value.
        self.prior_mass_near_failures: float | None = report.get("prior_mass_near_failures")
        #: Whether to believe the number; None when there is none.
        self.diagnosis: Diagnosis | None = Diagnosis(report, found["findings"]) if found["findings"] else None
        #: About how many evaluations ``target_sd`` takes, where it is not met and that can be said.
        self.evaluations_needed: int | None = report.get("evaluations_needed")
        #: The same in words; None without a target that is not met.
        self.outlook: str | None = report.get("outlook")
        #: How independent runs compare, where there are several: ``p_value``, ``scatter``, ``chi_square`` and others.
        self.agreement: dict[str, Any] | None = report.get("agreement")
        #: Evaluations for which different values were told; the first counts.
        self.conflicts: list[int] = report["conflicts"]
        #: Evaluations whose answer took the place of another.
        self.replaced: list[int] = report.get("replaced", [])
        #: What plots and reports call the parameters, by name; those without a label are called by their names.
        self.labels: dict[str, str] = dict(found.get("labels") or {})

    @property
    def has_evidence(self) -> bool:
        """Whether there is a log Z: not if the run failed or no finite log-likelihood was ever seen."""
        return self._report["log_z"] is not None

    @property
    def log_z(self) -> float:
        """The evidence: the logarithm of the integral of the likelihood against the prior.

        Raises `NoEvidence` when there is none.
        """
        return self._number("log_z")

    @property
    def log_z_sd(self) -> float:
        """The standard deviation of log Z: half the length of the 68 % interval, or forty and more before the run has arrived."""
        return self._number("log_z_sd")

    @property
    def log_z_low(self) -> float:
        """The lower end of the interval that holds log Z with 95 %: nearer than the upper one, since what was not seen can only add."""
        return self._number("log_z_low")

    @property
    def log_z_high(self) -> float:
        """The upper end of the interval that holds log Z with 95 %."""
        return self._number("log_z_high")

    def log_z_interval(self, probability: float = 0.95) -> tuple[float, float]:
        """The interval that holds log Z with a probability, whether the run has arrived or not."""
        return self._known().log_z_interval(probability)

    @property
    def logz(self) -> float:
        """The same as ``log_z``."""
        return self.log_z

    @property
    def logzerr(self) -> float:
        """The same as ``log_z_sd``."""
        return self.log_z_sd

    def _number(self, key: str) -> float:
        value: float | None = self._report[key]
        if value is None:
            raise NoEvidence(f"there is no log Z: {self.reason}")
        return value

    @functools.cached_property
    def evaluations(self) -> Table:
        """Every evaluation that was asked: θ, log-likelihood, batch, seconds, worker and, where it failed, kind and message.

        There is a column ``sd`` where values came with a standard deviation. A job with several such values has a row for each. There is a
        column ``repeat`` where there are several independent runs.
        """
        rows = [row for row in self._found["evaluations"] if row["status"] != "imported"]
        theta = np.array([row["theta"] for row in rows], dtype=float).reshape(len(rows), len(self.names))
        columns: dict[str, np.ndarray] = {"id": np.array([row["id"] for row in rows], dtype=int)}
        columns.update((name, theta[:, k]) for k, name in enumerate(self.names))
        columns.update(self._values(rows))
        columns["status"] = np.array([row["status"] for row in rows], dtype=object)
        columns["batch"] = np.array([row["batch"] for row in rows], dtype=int)
        if any("repeat" in row for row in rows):
            columns["repeat"] = np.array([row["repeat"] for row in rows], dtype=int)
        columns["seconds"] = np.array([row["seconds"] for row in rows], dtype=float)
        columns["attempts"] = np.array([row["attempts"] for row in rows], dtype=int)
        for key in ("worker", "kind", "message"):
            columns[key] = np.array([row[key] for row in rows], dtype=object)
        return Table(columns)

    @functools.cached_property
    def imported(self) -> Table:
        """Evaluations made elsewhere, which the run began with."""
        rows = [row for row in self._found["evaluations"] if row["status"] == "imported"]
        theta = np.array([row["theta"] for row in rows], dtype=float).reshape(len(rows), len(self.names))
        columns = {name: theta[:, k] for k, name in enumerate(self.names)}
        columns.update(self._values(rows))
        return Table(columns)

    def _values(self, rows: list[dict[str, Any]]) -> dict[str, np.ndarray]:
        """Log-likelihoods and, where any is known, the standard deviations of their noise."""
        columns = {"log_likelihood": np.array([_log_likelihood(row) for row in rows], dtype=float)}
        if any("sd" in row for row in rows):
            columns[sd_column(self.names)] = np.array([row.get("sd", np.nan) for row in rows], dtype=float)
        return columns

    @functools.cached_property
    def rounds(self) -> Table:
        """What was believed after every batch: log Z, its standard deviation, and the model's hyperparameters.

        Of several independent runs, one after the other, each from its own evaluations; the column ``repeat`` says which.
        """
        rounds = self._found["rounds"]
        beliefs = [one["belief"] for one in rounds]
        columns = {"batches": np.array([one["batches"] for one in rounds], dtype=int)}
        if self.repeats.rows > 0:
            columns["repeat"] = np.array([one.get("repeat", 0) + 1 for one in rounds], dtype=int)
        columns["evaluations"] = np.array([belief["values"] for belief in beliefs], dtype=int)
        for key in ("log_z", "log_z_sd", "sigma2"):
            columns[key] = np.array([belief[key] for belief in beliefs], dtype=float)
        scales = np.array([belief["lengthscales"] for belief in beliefs], dtype=float).reshape(len(beliefs), len(self.names))
        columns.update((f"lengthscale[{k}]", scales[:, k]) for k in range(scales.shape[1]))
        return Table(columns)

    @functools.cached_property
    def repeats(self) -> Table:
        """What each of several independent runs says by itself: its seed, log Z, standard deviation and evaluations. Empty for a single run."""
        rows = self._report.get("repeats", [])
        kinds = {"repeat": int, "seed": np.uint64, "log_z": float, "log_z_sd": float, "evaluations": int}
        return Table({key: np.array([row[key] for row in rows], dtype=kind) for key, kind in kinds.items()})

    @property
    def failures(self) -> dict[str, int]:
        """How many evaluations failed for good, by kind."""
        return dict(self._report["failures_by_kind"])

    # The posterior

    def samples(self, n: int = 1000, seed: int = 0) -> np.ndarray:
        """``n`` equally weighted draws from the posterior, a row each."""
        return self._known().samples(whole("n", n), whole("seed", seed))

    @functools.cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        return self._known().moments()

    @property
    def mean(self) -> np.ndarray:
        """The posterior mean of each parameter."""
        return self._moments[0].copy()

    @property
    def cov(self) -> np.ndarray:
        """The posterior covariance of the parameters."""
        return self._moments[1].copy()

    @property
    def sd(self) -> np.ndarray:
        """The posterior standard deviation of each parameter."""
        return np.sqrt(np.diag(self._moments[1]))

    def marginal(self, name: str) -> Marginal:
        """The posterior of one parameter: its mean, density, quantiles and intervals."""
        return self._known().marginal(self._index(name))

    def expect(
        self, function: Callable[[Any], ArrayLike], *, pass_dict: bool = False, n: int = _DRAWS, seed: int = 0
    ) -> Expectation:
        """The posterior expectation of ``function(theta)``, a number or an array, and its standard deviation, from about ``n`` draws.

        The standard deviation has both parts: the likelihood is known at the evaluated points only, and draws are finite.
        """
        of = Predicted(function, self.names if pass_dict else None)
        found = self._known().expect(of, whole("n", n), whole("seed", seed))
        return Expectation(of.shaped(found.mean), of.shaped(found.sd))

    def __getstate__(self) -> dict[str, Any]:
        # The belief lives in native memory; the journal, from which it is made again, travels.
        return self.__dict__ | {"_belief": None, "_prior": None}

    def _recalled(self) -> Session:
        """The run behind the result, in memory."""
        if self._journal is None:
            raise InvalidInput("the result has no journal, expected one of this release that a run or Result.load has made")
        return Session.recall(self._journal, self._prior)

    def _known(self) -> Belief:
        if not self.has_evidence:
            raise NoEvidence(f"there is no posterior: {self.reason}")
        if self._belief is None:
            try:
                self._belief = self._recalled().belief()
            except InvalidInput as error:
                if "a function" not in str(error):
                    raise
                message = "its prior is a function, which no file can hold: save the result and give the prior again, Result.load(path, prior=…)"
                raise InvalidInput(f"the result was pickled or saved, and {message}") from None
        assert self._belief is not None
        return self._belief

    # To be kept, and to go on from

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the result to a file, from which `Result.load` reads it: numbers, tables and the posterior. It is JSON and holds no code.

        What the likelihood returned beside its values is in it as far as JSON can hold it.
        """
        if self._journal is None:
            self._recalled()
        blobs = {}
        for id, blob in self.blobs.items():
            try:
                blobs[str(id)] = json.loads(json.dumps(blob, default=_plain))
            except (TypeError, ValueError, RecursionError):
                warnings.warn(f"what evaluation {id} returned besides its value cannot be written as JSON: it is not saved", stacklevel=2)
        text = json.dumps(
            {"batchquad": _FORMAT, "found": self._found, "blobs": blobs, "journal": (self._journal or b"").decode()}
        )
        write_whole(path, text)

    @classmethod
    def load(cls, path: str | os.PathLike[str], prior: PriorLike | None = None) -> Self:
        """The result that `save` wrote. ``prior`` is needed for the posterior of a run whose prior is a function."""
        try:
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            found, blobs, journal = kept["found"], kept["blobs"], kept["journal"].encode()
            if kept["batchquad"] != _FORMAT:
                raise InvalidInput(
                    f"{os.fspath(path)} has format {kept['batchquad']!r}, expected {_FORMAT}: a later release wrote it"
                )
            return cls(
                found, None, {int(id): blob for id, blob in blobs.items()}, journal, None if prior is None else as_prior(prior)
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(f"{os.fspath(path)} is no result, expected a file that Result.save wrote: {error}") from None

    def study(self, prior: PriorLike | None = None, **settings: Unpack[Settings]) -> Study:
        """The run that led here, in memory, to go on with: with a larger budget, say ``result.study(max_evaluations=256).run(log_likelihood)``.

        ``prior`` is needed after loading a run whose prior is a function. The result itself does not change, nor does its store.
        """
        from ._study import Study

        session = self._recalled() if prior is None else Session.recall(self._journal or b"", as_prior(prior))
        study = Study._of(session, self._prior if prior is None else as_prior(prior))
        study._blobs.update(self.blobs)
        if settings:
            study.change(**settings)
        return study

    def _resumed(self, prior: PriorLike, seed: int, labels: Mapping[str, str] | None, choices: Settings) -> Study:
        """The run that led here, under the same prior and seed and with these choices."""
        from ._study import Study

        if self._journal is None:
            self._recalled()
        native = as_prior(prior)
        wanted = to_json(with_start(choices, native.names))
        study = Study._of(Session.recall(self._journal or b"", native, wanted, whole("seed", seed)), native)
        study._blobs.update(self.blobs)
        if labels is not None:
            study.label(labels)
        return study

    def report(
        self, path: str | os.PathLike[str] | None = None, *, name: str | None = None, known_log_z: float | None = None
    ) -> str:
        """The program's report: one page of HTML that stands alone, with figures, diagnostics and all evaluations.

        Args:
            path: The file to write; without one the page is only returned.
            name: What the model is called in it; by default the name of the file or of the store.
            known_log_z: The answer, where it is known: drawn beside the estimate.

        Returns:
            The page.
        """
        if known_log_z is not None and not math.isfinite(known_log_z):
            raise InvalidInput(f"known_log_z is {known_log_z!r}, expected a finite number")
        named = name or Path(path or self.store or "model").stem
        page = self._recalled().page(self._journal or b"", named, known_log_z)
        if path is not None:
            write_whole(path, page)
        return page

    def _index(self, name: str) -> int:
        try:
            return self.names.index(name)
        except ValueError:
            raise InvalidInput(f"parameter is {name!r}, expected one of {', '.join(self.names)}") from None

    # To other packages

    def to_arviz(self, n: int = 4000, seed: int = 0) -> Any:
        """The posterior as ArviZ has it, from ``n`` draws in one chain: ``InferenceData`` or, from ArviZ 1, ``DataTree``."""
        import arviz

        draws = self.samples(n, seed)
        posterior = {name: draws[np.newaxis, :, k] for k, name in enumerate(self.names)}
        if int(arviz.__version__.partition(".")[0]) >= 1:
            return arviz.from_dict({"posterior": posterior})
        return arviz.from_dict(posterior=posterior)

    def plot_run(self, figure: Figure | None = None) -> Figure:
        """log Z with its standard deviation after every batch; needs matplotlib."""
        from ._plot import plot_run

        return plot_run(self, figure)

    def plot_corner(
        self,
        names: Sequence[str] | None = None,
        figure: Figure | None = None,
        *,
        truths: Mapping[str, float] | Sequence[float | None] | None = None,
        others: Mapping[str, Result] | Result | None = None,
        labels: Mapping[str, str] | None = None,
        name: str = "this run",
    ) -> Figure:
        """The posterior of the parameters, one by one and in pairs; needs matplotlib.

        Args:
            names: The parameters to show; by default all.
            figure: Where to draw; by default a new figure.
            truths: Known values, by name or in the order of ``names``: drawn as lines.
            others: Other results to draw over this one, by the names that the legend gives them; they need not have all parameters.
            labels: What to call the parameters instead of ``Result.labels``; between dollar signs they are formulas.
            name: What the legend calls this run.
        """
        from ._plot import plot_corner

        return plot_corner(self, names, figure, truths, others, labels, name)

    def plot_evaluations(
        self, names: Sequence[str] | None = None, figure: Figure | None = None, *, labels: Mapping[str, str] | None = None
    ) -> Figure:
        """Where the likelihood was evaluated, and what came of it; needs matplotlib. ``labels`` as for `plot_corner`."""
        from ._plot import plot_evaluations

        return plot_evaluations(self, names, figure, labels)

    # For people

    def _parameters(self) -> list[list[str]]:
        if self._belief is None or not self.has_evidence:
            return []
        pairs = zip(self.names, self.mean.tolist(), self.sd.tolist(), strict=True)
        return [[name, rounded(mean, sd), rounded(sd, sd)] for name, mean, sd in pairs]

    def __repr__(self) -> str:
        text = facts(self._found["facts"])
        rows = [["parameter", "mean", "sd"], *self._parameters()]
        if len(rows) > 1:
            widths = [max(len(row[k]) for row in rows) for k in range(3)]
            text += "\n\n" + "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows)
        return text

    def _repr_html_(self) -> str:
        text = html_table(None, self._found["facts"])
        parameters = self._parameters()
        return text + (html_table(["parameter", "mean", "sd"], parameters) if parameters else "")


def _log_likelihood(row: dict[str, Any]) -> float:
    # A number, "-inf", or nothing.
    value = row["log_likelihood"]
    return float("nan") if value is None else float(value)


def sd_column(names: list[str]) -> str:
    """The name of the column of standard deviations in tables with a column for each parameter."""
    return "log_likelihood_sd" if "sd" in names else "sd"


def make_result(session: Session, ending: tuple[str, str] | None, blobs: dict[int, Any], prior: Prior | None) -> Result:
    """The result of a session."""
    report, belief = session.report(ending)
    try:
        journal = session.journal()
    except (InvalidInput, StoreError):
        # The store has gone or come to harm meanwhile; the numbers are there all the same.
        journal = None
    return Result(json.loads(report), belief, blobs, journal, prior)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")
