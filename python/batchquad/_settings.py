"""The choices of a run, with the names that they have everywhere."""

from __future__ import annotations

import difflib
import json
import math
from typing import Any, Literal, TypedDict

import numpy as np

from ._errors import InvalidInput

Surrogate = Literal["auto", "log", "wsabi-l", "wsabi-m", "plain"]
BatchRule = Literal[
    "kriging-believer", "kriging-optimist", "constant-liar", "local-penalisation", "gonzalez-penalisation", "naive-top", "random"
]
Schedule = Literal["batch", "async"]
OnFailure = Literal["exclude", "as-zero", "abort"]


class FurtherSettings(TypedDict, total=False):
    """Choices that are seldom changed. The problem-file documentation of the project describes all of them."""

    batch_growth: float
    max_batches: int | None
    max_seconds: float | None
    stall: float | None
    kernel: Literal["isotropic", "ard"]
    known_kernel: dict[str, Any] | None
    refit_growth: float
    reference: Literal["moving", "prior"]
    acquisition: Literal["uncertainty", "variance-reduction"]
    starts_per_dim: int
    penalisation: dict[str, float]
    lie: Literal["min", "mean", "max"]
    initial_design: Literal["sobol", "draws"]
    initial_size: int | None
    noise_sd: float | None


class Settings(FurtherSettings, total=False):
    """All choices of a run; every one has a default."""

    batch: int
    max_evaluations: int
    target_sd: float | None
    surrogate: Surrogate
    batch_rule: BatchRule
    schedule: Schedule
    on_failure: OnFailure


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
