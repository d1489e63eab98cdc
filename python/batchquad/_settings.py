"""The choices of a run, with the names that they have everywhere."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

import numpy as np

from ._errors import InvalidInput

Surrogate = Literal["auto", "log", "wsabi-l", "wsabi-m", "plain"]
BatchRule = Literal[
    "kriging-believer", "kriging-optimist", "constant-liar", "local-penalisation", "gonzalez-penalisation", "naive-top", "random"
]
Schedule = Literal["batch", "async"]
OnFailure = Literal["exclude", "as-zero", "abort"]

#: A point by the names of its parameters or in their order, or several of these.
StartLike = Mapping[str, float] | Sequence[float] | np.ndarray | Sequence[Mapping[str, float] | Sequence[float] | np.ndarray]


class FurtherSettings(TypedDict, total=False):
    """Choices that are seldom changed. Problem files have the same ones under the same names."""

    #: Outside the initial design a batch has at most this share of the values known, because a large first batch would be chosen on a poor model. None
    #: by default: 0.25 for batches of up to 16 points and up to 0.4 for larger ones, 0.5 with the other beliefs. A large number switches it off.
    batch_growth: float | None
    #: The run ends after so many batches. None by default: no limit.
    max_batches: int | None
    #: The run ends after so many seconds. None by default: no limit.
    max_seconds: float | None
    #: The run ends when another batch is forecast to reduce the standard deviation of log Z by less than this share of it, in two batches in a row. None
    #: by default: it does not.
    stop_gain: float | None
    #: The run ends when log Z has moved by less than a tenth of this in each of five batches. None by default: it does not.
    stall: float | None
    #: A lengthscale for each parameter (``"ard"``, the default), or one for all: fewer to fit where all parameters are alike. Only for the beliefs
    #: about the square root and the likelihood itself.
    kernel: Literal["isotropic", "ard"]
    #: ``{"log_sigma2": …, "lengthscales": […]}`` of the Gaussian process in latent units, where they are known. None by default: they are fitted.
    known_kernel: dict[str, Any] | None
    #: Beyond 40 values, hyperparameters are searched from several starts whenever the values have grown by this factor, and in between from the last
    #: ones alone. 1.5 by default; 1 searches every time, which takes longer.
    refit_growth: float
    #: What the square root of the likelihood is integrated against: a measure that follows the posterior (``"moving"``, the default), which needs far
    #: fewer values where the posterior is narrow, or the prior itself (``"prior"``), as in the paper.
    reference: Literal["moving", "prior"]
    #: What is maximised to choose a point: the uncertainty of the integrand there (the default), or how much a value there would reduce that of the
    #: integral, which costs more.
    acquisition: Literal["uncertainty", "variance-reduction"]
    #: Starts of that search for each parameter, 10 by default. More find a better maximum in many parameters.
    starts_per_dim: int
    #: The constants of ``batch_rule="local-penalisation"``: ``{"slope": 0.25, "power": 6}`` by default.
    penalisation: dict[str, float]
    #: What ``batch_rule="constant-liar"`` says about points that are being evaluated: ``"mean"`` of the values by default.
    lie: Literal["min", "mean", "max"]
    #: How the first points are laid out: evenly (``"sobol"``, the default), or as draws from the prior.
    initial_design: Literal["sobol", "draws"]
    #: How many points the run begins with: by default twice the parameters and four, or four times and four for the beliefs about the square root
    #: and the likelihood itself.
    initial_size: int | None
    #: The standard deviation of the noise of every log-likelihood, where it is known. None by default: it is fitted.
    noise_sd: float | None


class Settings(FurtherSettings, total=False):
    """All choices of a run; every one has a default."""

    batch: int
    max_evaluations: int
    target_sd: float | None
    repeats: int | None
    surrogate: Surrogate
    batch_rule: BatchRule
    schedule: Schedule
    on_failure: OnFailure
    start: StartLike | None


_KNOWN = [*FurtherSettings.__annotations__, *Settings.__annotations__]


def to_json(settings: Any) -> str:
    """Settings as text for the core, which checks their values."""
    for key, value in settings.items():
        if key not in _KNOWN:
            near = difflib.get_close_matches(key, _KNOWN, 1)
            raise TypeError(f"unexpected keyword argument {key!r}" + (f". Did you mean {near[0]!r}?" if near else ""))
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"{key} is {value}, expected a finite number")
    return json.dumps(dict(settings), default=_plain)


def with_start(settings: Any, names: Sequence[str]) -> Any:
    """Settings whose start, if there is one, is a list of points by name.

    >>> with_start({"start": [1, 2]}, ["a", "b"])
    {'start': [{'a': 1.0, 'b': 2.0}]}
    >>> with_start({"start": [{"a": 1, "b": 2}, (3, 4)]}, ["a", "b"])
    {'start': [{'a': 1.0, 'b': 2.0}, {'a': 3.0, 'b': 4.0}]}
    """
    start = settings.get("start")
    if start is None:
        return {key: value for key, value in settings.items() if key != "start"}
    if isinstance(start, Mapping):
        return {**settings, "start": [_point("start", start, names)]}
    if isinstance(start, (str, bytes)) or not isinstance(start, (Sequence, np.ndarray)) or getattr(start, "ndim", 1) == 0:
        raise InvalidInput(f"start is {start!r}, expected a dict of names to numbers, {len(names)} numbers, or a list of these")
    if len(start) > 0 and not any(isinstance(one, (Mapping, Sequence, np.ndarray)) for one in start):
        return {**settings, "start": [_point("start", start, names)]}
    return {**settings, "start": [_point(f"start[{i}]", one, names) for i, one in enumerate(start)]}


def _point(at: str, given: Any, names: Sequence[str]) -> dict[str, float]:
    """A point by name; the core checks the names and whether it is inside the prior's support."""
    if not isinstance(given, Mapping):
        if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
            raise InvalidInput(f"{at} is {given!r}, expected a dict of names to numbers, or {len(names)} numbers")
        if len(given) != len(names):
            raise InvalidInput(f"{at} has {len(given)} numbers, expected {len(names)}: {', '.join(names)}")
        given = dict(zip(names, given, strict=True))
    point = {}
    for name, value in given.items():
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise InvalidInput(f"{at}[{name!r}] is {value!r}, expected a number")
        if not math.isfinite(value):
            raise InvalidInput(f"{at}[{name!r}] is {value}, expected a finite number")
        point[str(name)] = float(value)
    return point


def whole(what: str, value: Any) -> int:
    """A whole number that the core can hold."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 2**64:
        raise InvalidInput(f"{what} is {value!r}, expected a whole number from 0 to 2**64 - 1")
    return int(value)


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise InvalidInput(f"a setting is {value!r}, expected a number or text")
