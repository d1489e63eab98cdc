"""Models side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._batchquad import average as _average
from ._batchquad import clean, probability
from ._batchquad import compare as _compare
from ._batchquad import conclusion as _conclusion
from ._errors import InvalidInput
from ._expectation import Expectation, Predicted
from ._result import _DRAWS, Result
from ._table import Table
from ._text import html_table, plus_minus

Evidence = Result | tuple[float, float]


class Comparison(Table):
    """A row for each model: evidence, Bayes factor against the best, posterior probability, with their standard deviations, and verdict.

    The verdict says whether to believe the evidence; it is None for models that are given as numbers.
    """

    def __init__(
        self, models: Mapping[str, Evidence], columns: Mapping[str, np.ndarray], log_odds: list[float], conclusion: str
    ) -> None:
        super().__init__(columns)
        self._models, self._log_odds = dict(models), log_odds
        #: What the comparison says, in a sentence: which model leads, which tie, and whose evidence is not to be trusted.
        self.conclusion = conclusion

    @property
    def best(self) -> str:
        """The name of the model with the largest evidence."""
        return str(self["model"][int(np.argmax(self["log_z"]))])

    @property
    def probabilities(self) -> dict[str, float]:
        """The posterior probability of each model."""
        return dict(zip(self["model"].tolist(), self["probability"].tolist(), strict=True))

    def expect(
        self,
        functions: Mapping[str, Callable[[Any], Any]] | Callable[[Any], Any],
        *,
        pass_dict: bool = False,
        n: int = _DRAWS,
        seed: int = 0,
    ) -> Expectation:
        """The model-averaged expectation: of one function, or of one for each model, whose parameters may differ.

        Each model is weighted by its probability; what is not known about evidences and expectations is in the standard deviation.
        """
        found, of = [], None
        for name, model in self._models.items():
            if not isinstance(model, Result):
                raise InvalidInput(f"model {name!r} is {model!r}, expected a Result: numbers alone have no expectations")
            if isinstance(functions, Mapping) and name not in functions:
                raise InvalidInput(f"functions have no {name!r}, expected one for each model")
            of = Predicted(functions[name] if isinstance(functions, Mapping) else functions, model.names if pass_dict else None)
            found.append(model._known().expect(of, n, seed))
        assert of is not None
        mean, sd = _average(found, self._log_odds)
        return Expectation(of.shaped(mean), of.shaped(sd))

    def _readable(self) -> tuple[list[str], list[list[str]]]:
        rows, judged = [], any(verdict is not None for verdict in self["verdict"])
        for i in np.argsort(-self["log_z"]):
            factor, sd = self["log_bayes_factor"][i], self["log_bayes_factor_sd"][i]
            evidence = plus_minus(self["log_z"][i], self["log_z_sd"][i])
            doubtful = self["verdict"][i] == "do-not-trust"
            share = "unknown" if doubtful else probability(self["probability"][i], self["probability_sd"][i])
            row = [str(self["model"][i]), evidence, plus_minus(factor, sd) if sd > 0 else f"{factor:g}", share]
            rows.append([*row, self["verdict"][i] or "unknown"] if judged else row)
        header = ["model", "log Z", "log Bayes factor", "probability"]
        return [*header, "verdict"] if judged else header, rows

    def _remarks(self) -> list[str]:
        """Why evidences are not to be trusted, and what the comparison says."""
        doubts = []
        for name, model in self._models.items():
            if isinstance(model, Result) and model.diagnosis is not None and model.diagnosis.verdict == "do-not-trust":
                doubts.append(f"{name}: {model.diagnosis.summary}")
        return [clean(remark) for remark in [*doubts, f"{self.conclusion}."]]

    def __repr__(self) -> str:
        header, rows = self._readable()
        table = repr(Table({name: np.array([row[k] for row in rows], dtype=object) for k, name in enumerate(header)}))
        return "\n".join([table, *self._remarks()])

    def _repr_html_(self) -> str:
        return html_table(*self._readable()) + html_table(None, [[remark] for remark in self._remarks()])


def compare(models: Mapping[str, Evidence], prior: Mapping[str, float] | None = None) -> Comparison:
    """Bayes factors and posterior probabilities of models, the uncertainty of their evidences carried through.

    Args:
        models: Names to results, or to ``(log_z, log_z_sd)``.
        prior: Prior probabilities of the models, up to a common factor; by default equal.

    >>> compare({"line": (-14.02, 0.01), "constant": (-17.5, 0.02)})
    model     log Z            log Bayes factor  probability
    line      -14.020 ± 0.010  0                 0.9701 ± 0.0006
    constant  -17.500 ± 0.020  -3.480 ± 0.022    0.0299 ± 0.0006
    line is the most probable, with 97.0 %.
    """
    if not models:
        raise InvalidInput("models is empty, expected at least one")
    evidences = [_evidence(name, model) for name, model in models.items()]
    odds = [0.0] * len(models) if prior is None else [_log_prior(name, prior) for name in models]
    shifted = [(log_z + odd, sd) for (log_z, sd), odd in zip(evidences, odds, strict=True)]
    factors, standings = np.array(_compare(evidences)), _compare(shifted)
    probabilities = np.array(standings)
    verdicts = [_verdict(model) for model in models.values()]
    columns = {
        "model": np.array(list(models), dtype=object),
        "log_z": np.array([log_z for log_z, _ in evidences]),
        "log_z_sd": np.array([sd for _, sd in evidences]),
        "log_bayes_factor": factors[:, 0],
        "log_bayes_factor_sd": factors[:, 1],
        "probability": probabilities[:, 2],
        "probability_sd": probabilities[:, 3],
        "verdict": np.array(verdicts, dtype=object),
    }
    return Comparison(models, columns, odds, _conclusion([str(name) for name in models], standings, verdicts))


def _verdict(model: Evidence) -> str | None:
    return model.diagnosis.verdict if isinstance(model, Result) and model.diagnosis is not None else None


def _evidence(name: str, model: Evidence) -> tuple[float, float]:
    if isinstance(model, Result):
        return model.log_z, model.log_z_sd
    try:
        log_z, sd = model
        return float(log_z), float(sd)
    except (TypeError, ValueError):
        raise InvalidInput(f"model {name!r} is {model!r}, expected a Result or (log_z, log_z_sd)") from None


def _log_prior(name: str, prior: Mapping[str, float]) -> float:
    value = prior.get(name)
    if value is None or not 0.0 < value < math.inf:
        raise InvalidInput(f"prior probability of model {name!r} is {value!r}, expected a number > 0")
    return math.log(value)
