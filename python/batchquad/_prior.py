"""Priors: the families of the core, frozen scipy.stats distributions, maps from the unit cube."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ._batchquad import Prior, check_distribution
from ._errors import InvalidInput

Function: TypeAlias = Callable[[np.ndarray], Any]
Block: TypeAlias = tuple[list[str], str, Any]


@dataclass(frozen=True)
class Distribution:
    """A distribution of one parameter. The families and their words are those of problem files."""

    family: ClassVar[str]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "periodic":
                continue
            try:
                number = float(value)
            except (TypeError, ValueError):
                raise InvalidInput(f"{field.name} of {type(self).__name__} is {value!r}, expected a number") from None
            object.__setattr__(self, field.name, number)
        check_distribution(self.family, self._parameters())

    def _parameters(self) -> dict[str, float | bool]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Normal(Distribution):
    """N(mean, sd²)."""

    family = "normal"
    mean: float
    sd: float


@dataclass(frozen=True)
class LogNormal(Distribution):
    """log θ ~ N(mu, sigma²)."""

    family = "log-normal"
    mu: float
    sigma: float


@dataclass(frozen=True)
class Uniform(Distribution):
    """Constant density between low and high.

    With ``periodic=True`` both ends are one place, as for an angle or a phase: a posterior across them is in one piece. Samples, means and
    intervals may then lie up to one turn beyond ``high``.
    """

    family = "uniform"
    low: float
    high: float
    periodic: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.periodic, (bool, np.bool_)):
            raise InvalidInput(f"periodic of Uniform is {self.periodic!r}, expected True or False")
        super().__post_init__()


@dataclass(frozen=True)
class LogUniform(Distribution):
    """Density ∝ 1/θ between low and high, both > 0."""

    family = "log-uniform"
    low: float
    high: float


@dataclass(frozen=True)
class Beta(Distribution):
    """Density ∝ θ^(a−1) (1−θ)^(b−1) on (0, 1)."""

    family = "beta"
    a: float
    b: float


@dataclass(frozen=True)
class Gamma(Distribution):
    """Density ∝ θ^(shape−1) exp(−rate θ)."""

    family = "gamma"
    shape: float
    rate: float


@dataclass(frozen=True)
class InverseGamma(Distribution):
    """Density ∝ θ^(−shape−1) exp(−scale/θ)."""

    family = "inverse-gamma"
    shape: float
    scale: float


@dataclass(frozen=True)
class Exponential(Distribution):
    """Density ∝ exp(−rate θ)."""

    family = "exponential"
    rate: float


@dataclass(frozen=True)
class HalfNormal(Distribution):
    """The absolute value of N(0, scale²)."""

    family = "half-normal"
    scale: float


@dataclass(frozen=True)
class Cauchy(Distribution):
    """Density ∝ 1/(1 + ((θ − location)/scale)²)."""

    family = "cauchy"
    location: float
    scale: float


@dataclass(frozen=True)
class HalfCauchy(Distribution):
    """The absolute value of Cauchy(0, scale)."""

    family = "half-cauchy"
    scale: float


@dataclass(frozen=True)
class StudentT(Distribution):
    """Density ∝ (1 + ((θ − location)/scale)²/dof)^(−(dof+1)/2)."""

    family = "student-t"
    dof: float
    location: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class TruncatedNormal(Distribution):
    """N(mean, sd²) between low and high, one of which may be infinite."""

    family = "truncated-normal"
    mean: float
    sd: float
    low: float = -math.inf
    high: float = math.inf


class MultivariateNormal:
    """N(mean, covariance) of several parameters.

    As a whole prior it may have ``names`` (by default ``x0``, ``x1``, …); as a value in a dict its names are the key, a tuple.

    >>> MultivariateNormal([0, 1], [[1, 0.3], [0.3, 0.5]], names=["intercept", "slope"])
    MultivariateNormal(mean=[0.0, 1.0], cov=[[1.0, 0.3], [0.3, 0.5]])
    """

    def __init__(self, mean: ArrayLike, cov: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.mean = np.atleast_1d(np.asarray(mean, dtype=float))
        self.cov = np.atleast_2d(np.asarray(cov, dtype=float))
        if self.mean.ndim != 1 or self.cov.shape != (self.mean.size, self.mean.size):
            shape, d = self.cov.shape, self.mean.size
            raise InvalidInput(f"cov of MultivariateNormal has shape {shape}, expected ({d}, {d}) for {d} elements of mean")
        self.names = None if names is None else list(names)

    def __repr__(self) -> str:
        return f"MultivariateNormal(mean={self.mean.tolist()}, cov={self.cov.tolist()})"


class UnitCube:
    """Parameters that a function makes of a point uniform in the unit cube, as users of nested sampling have it.

    ``parameters`` is their number, or their names. The ``inverse`` (from θ to the cube) is needed for evaluations made elsewhere
    (``initial``), ``log_density`` for nothing but your own use.

    Such a prior is code, which no store can hold: the store says so, the program `batchquad` does not continue it, and whoever resumes it
    from Python gives the function again. A function that has changed is noticed by its values at a few points.

    >>> UnitCube(lambda cube: 10 * cube - 5, 2)
    UnitCube(x0, x1)
    """

    def __init__(
        self,
        transform: Function,
        parameters: int | Sequence[str],
        *,
        inverse: Function | None = None,
        log_density: Callable[[np.ndarray], float] | None = None,
    ) -> None:
        for what, function in [("transform", transform), ("inverse", inverse), ("log_density", log_density)]:
            if function is not None and not callable(function):
                raise InvalidInput(f"{what} of UnitCube is {function!r}, expected a function")
        if isinstance(parameters, str) or (isinstance(parameters, int) and parameters < 1):
            raise InvalidInput(f"parameters of UnitCube is {parameters!r}, expected their number >= 1 or a list of names")
        self.names = _numbered(parameters) if isinstance(parameters, int) else list(parameters)
        self.functions = (transform, inverse, log_density)

    def __repr__(self) -> str:
        return f"UnitCube({', '.join(self.names)})"


PriorLike: TypeAlias = Mapping[Any, Any] | MultivariateNormal | UnitCube | Prior | tuple[Function, int]


def as_prior(prior: PriorLike) -> Prior:
    """The prior that a user describes."""
    match prior:
        case Prior():
            return prior
        case MultivariateNormal() | UnitCube():
            return Prior([_joint(prior.names, prior)])
        case (transform, parameters) if callable(transform):
            return as_prior(UnitCube(transform, parameters))
        case Mapping():
            return Prior([_block(names, given) for names, given in prior.items()])
        case _ if callable(prior):
            raise InvalidInput("prior is a function, expected it with its dimension: UnitCube(prior_transform, dimension)")
        case _ if _frozen_joint(prior):
            return as_prior(MultivariateNormal(prior.mean, prior.cov))
        case _:
            raise InvalidInput(f"prior is {prior!r}, expected a dict of names to distributions, MultivariateNormal or UnitCube")


def _block(names: Any, given: Any) -> Block:
    if _frozen_joint(given):
        given = MultivariateNormal(given.mean, given.cov)
    if isinstance(given, (MultivariateNormal, UnitCube)):
        if isinstance(names, str):
            size = len(given.mean) if isinstance(given, MultivariateNormal) else len(given.names)
            names = [f"{names}[{i}]" for i in range(size)]
        return _joint(list(names), given)
    if not isinstance(names, str):
        raise InvalidInput(f"name of a parameter is {names!r}, expected text (or a tuple of names with MultivariateNormal)")
    if isinstance(given, Distribution):
        # Infinite ends are left out, as in problem files.
        parameters = {key: value for key, value in given._parameters().items() if math.isfinite(value)}
        return [names], given.family, parameters
    if isinstance(given, tuple) and len(given) == 2 and not callable(given[0]):
        return _block(names, Uniform(*given))
    if hasattr(given, "ppf") or hasattr(given, "icdf"):
        return _of_scipy(names, given)
    expected = "a distribution of batchquad or scipy.stats, or (low, high)"
    raise InvalidInput(f"prior of {names!r} is {given!r}, expected {expected}")


def _joint(names: list[str] | None, given: MultivariateNormal | UnitCube) -> Block:
    if isinstance(given, MultivariateNormal):
        return names or _numbered(len(given.mean)), "multivariate-normal", (given.mean.tolist(), given.cov.tolist())
    assert names is not None
    if len(names) != len(given.names):
        raise InvalidInput(f"names {names!r} for a UnitCube of {len(given.names)} parameters, expected one for each")
    return names, "unit-cube", given.functions


def _numbered(d: int) -> list[str]:
    return [f"x{i}" for i in range(d)]


def _frozen_joint(given: object) -> bool:
    return type(given).__name__ == "multivariate_normal_frozen" and type(given).__module__.startswith("scipy.")


def _of_scipy(name: str, given: Any) -> Block:
    """A frozen distribution: exactly as a family of the core where there is one, otherwise through its quantile function."""
    family = getattr(getattr(given, "dist", None), "name", None)
    if hasattr(given, "dist") and not hasattr(given, "logpdf"):
        raise InvalidInput(f"prior of {name!r} is the discrete distribution {family}, expected a continuous one")
    if family is not None:
        shapes, loc, scale = given.dist._parse_args(*given.args, **given.kwds)
        if any(np.size(number) != 1 for number in (*shapes, loc, scale)):
            raise InvalidInput(f"prior of {name!r} is an array of distributions, expected one for each name")
        translated = _translate(family, [float(np.squeeze(s)) for s in shapes], float(np.squeeze(loc)), float(np.squeeze(scale)))
        if translated is not None:
            return _block(name, translated)
    quantile = given.ppf if hasattr(given, "ppf") else given.icdf
    return [name], "unit-cube", (_vector(quantile), _vector(given.cdf), lambda theta: float(given.logpdf(theta[0])))


def _vector(function: Callable[[float], Any]) -> Function:
    return lambda point: [float(function(point[0]))]


def _translate(family: str, shapes: list[float], loc: float, scale: float) -> Distribution | None:
    match family, shapes:
        case "norm", []:
            return Normal(loc, scale)
        case "uniform", []:
            return Uniform(loc, loc + scale)
        case "cauchy", []:
            return Cauchy(loc, scale)
        case "t", [dof]:
            return StudentT(dof, loc, scale)
        case "truncnorm", [low, high]:
            return TruncatedNormal(loc, scale, loc + low * scale, loc + high * scale)
    if loc != 0.0:
        return None
    match family, shapes:
        case "lognorm", [sigma]:
            return LogNormal(math.log(scale), sigma)
        case "gamma", [shape]:
            return Gamma(shape, 1.0 / scale)
        case "chi2", [dof]:
            return Gamma(dof / 2.0, 0.5 / scale)
        case "invgamma", [shape]:
            return InverseGamma(shape, scale)
        case "expon", []:
            return Exponential(1.0 / scale)
        case "halfnorm", []:
            return HalfNormal(scale)
        case "halfcauchy", []:
            return HalfCauchy(scale)
        case (("loguniform" | "reciprocal"), [low, high]):
            return LogUniform(low * scale, high * scale)
        case "beta", [a, b] if scale == 1.0:
            return Beta(a, b)
    return None
