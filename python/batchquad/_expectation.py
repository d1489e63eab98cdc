"""Posterior expectations of functions of the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Expectation(NamedTuple):
    """A posterior expectation and its standard deviation: numbers, or arrays of the shape that the function returns."""

    mean: Any
    sd: Any


class Predicted:
    """A function of the parameters, its values made flat for the core and given their shape again."""

    def __init__(self, function: Callable[[Any], ArrayLike], names: list[str] | None) -> None:
        self._function, self._names, self._shape = function, names, ()

    def __call__(self, theta: np.ndarray) -> np.ndarray:
        argument = theta if self._names is None else dict(zip(self._names, theta.tolist(), strict=True))
        value = np.asarray(self._function(argument), dtype=float)
        self._shape = value.shape
        return value.ravel()

    def shaped(self, values: np.ndarray) -> Any:
        """Values as the function returns them."""
        return float(values[0]) if self._shape == () else values.reshape(self._shape)
