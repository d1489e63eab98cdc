"""The problems of src/problems/world in numpy: data, priors and log-likelihoods, for the scripts beside it.

A log-likelihood takes an array of parameter vectors, one per row, and returns a vector. A prior is a list of one-dimensional
distributions; `to_theta` maps standard normal coordinates to parameters as the library does.
"""

import csv
import dataclasses
import pathlib
from collections.abc import Callable

import numpy as np
from scipy import special

HERE = pathlib.Path(__file__).parent
LOG_TAU = np.log(2 * np.pi)


@dataclasses.dataclass
class Problem:
    name: str
    prior: list[tuple]
    log_likelihood: Callable[[np.ndarray], np.ndarray]
    # A point near the posterior, at which the Rust implementation is compared.
    reference: list[float]

    def to_theta(self, u: np.ndarray) -> np.ndarray:
        return np.column_stack([quantile(family, u[:, i]) for i, family in enumerate(self.prior)])

    def to_latent(self, theta: np.ndarray) -> np.ndarray:
        return np.column_stack([latent(family, theta[:, i]) for i, family in enumerate(self.prior)])

    def log_joint(self, u: np.ndarray) -> np.ndarray:
        """log l(theta(u)) + log N(u; 0, I)."""
        return self.log_likelihood(self.to_theta(u)) - 0.5 * (u**2).sum(1) - 0.5 * u.shape[1] * LOG_TAU


def quantile(family: tuple, u: np.ndarray) -> np.ndarray:
    kind, a, b = family
    match kind:
        case "normal":
            return a + b * u
        case "log-normal":
            return np.exp(np.log(a) + b * u)
        case "uniform":
            return a + (b - a) * special.ndtr(u)
        case "log-uniform":
            return a * np.exp(np.log(b / a) * special.ndtr(u))
    raise ValueError(kind)


def latent(family: tuple, theta: np.ndarray) -> np.ndarray:
    kind, a, b = family
    match kind:
        case "normal":
            return (theta - a) / b
        case "log-normal":
            return (np.log(theta) - np.log(a)) / b
        case "uniform":
            return special.ndtri((theta - a) / (b - a))
        case "log-uniform":
            return special.ndtri(np.log(theta / a) / np.log(b / a))
    raise ValueError(kind)


def columns(name: str) -> dict[str, np.ndarray]:
    with open(HERE / name) as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


# Linear regressions: an intercept and d - 1 regressors, noise of standard deviation 1.

LINEAR_ROWS = 60
WIDTHS = (10, 30, 100)
DIMS = (4, 6, 8)


def design(data: dict[str, np.ndarray], dim: int) -> np.ndarray:
    return np.column_stack([np.ones(len(data["x1"]))] + [data[f"x{j}"] for j in range(1, dim)])


def two_digits(x: float) -> float:
    return float(f"{x:.2g}")


def posterior_sds(matrix: np.ndarray) -> list[float]:
    """Standard deviations under a flat prior and unit noise, to two digits."""
    return [two_digits(s) for s in np.sqrt(np.diag(np.linalg.inv(matrix.T @ matrix)))]


def linear(dim: int, width: int) -> Problem:
    data = columns("linear.csv")
    matrix, y = design(data, dim), data[f"y_{dim}_{width}"]
    sds = [width * s for s in posterior_sds(matrix)]

    def log_likelihood(theta):
        return -0.5 * ((y - theta @ matrix.T) ** 2).sum(1) - 0.5 * len(y) * LOG_TAU

    # Near the posterior mean.
    reference = [round(float(b), 1) for b in np.linalg.lstsq(matrix, y)[0]]
    return Problem(f"linear-{dim}-{width}", [("normal", 0.0, s) for s in sds], log_likelihood, reference)


# A logistic regression: an intercept and four regressors.

LOGISTIC_PRIOR = [10.0, 15.0, 13.0, 14.0, 11.0]


def logistic() -> Problem:
    data = columns("logistic.csv")
    matrix, sign = design(data, 5), 2 * data["y"] - 1

    def log_likelihood(theta):
        return -np.logaddexp(0.0, -sign * (theta @ matrix.T)).sum(1)

    return Problem("logistic-5", [("normal", 0.0, s) for s in LOGISTIC_PRIOR], log_likelihood, [-0.5, 1.0, -1.0, 0.5, 0.5])


def gaussian_2() -> Problem:
    def log_likelihood(theta):
        return -2 * ((theta - np.array([0.5, -1.0])) ** 2).sum(1) - LOG_TAU - np.log(0.25)

    return Problem("gaussian-2", [("normal", 0.0, 1.0)] * 2, log_likelihood, [0.3, -0.5])


# Four Gaussians (weight, centre, width) under a uniform prior.

FOUR_MODES = [
    (0.40, (-5.0, -4.0), 1.0),
    (0.30, (4.0, 5.5), 0.7),
    (0.20, (5.0, -3.0), 0.5),
    (0.10, (-4.0, 4.5), 0.8),
]


def four_modes() -> Problem:
    def log_likelihood(theta):
        terms = [
            np.log(w) - 0.5 * ((theta - np.array(c)) ** 2).sum(1) / s**2 - LOG_TAU - 2 * np.log(s) for w, c, s in FOUR_MODES
        ]
        return special.logsumexp(terms, axis=0)

    return Problem("four-modes", [("uniform", -10.0, 10.0)] * 2, log_likelihood, [3.0, 4.0])


def rosenbrock() -> Problem:
    def log_likelihood(theta):
        x, y = theta.T
        return -((1 - x) ** 2 + 100 * (y - x**2) ** 2) / 20

    return Problem("rosenbrock", [("normal", 0.0, 2.0)] * 2, log_likelihood, [0.5, 1.0])


# Lotka-Volterra: prey u and predators v, u' = (a - b v) u, v' = (d u - c) v, observed once a year with log-normal noise.

LOTKA_YEARS = 24
LOTKA_STEPS = 20
LOTKA_TRUTH = [0.6, 0.03, 0.02, 0.7, 30.0, 6.0, 0.15, 0.15]
# Medians and widths of the log-normal priors on a, b, d, c, the initial values and the standard deviations of the noise.
LOTKA_PRIOR = [
    ("log-normal", 1.0, 1.0),
    ("log-normal", 0.05, 1.0),
    ("log-normal", 0.05, 1.0),
    ("log-normal", 1.0, 1.0),
    ("log-normal", 20.0, 1.0),
    ("log-normal", 20.0, 1.0),
    ("log-normal", 0.5, 1.5),
    ("log-normal", 0.5, 1.5),
]


def runge_kutta(slope: Callable, u: np.ndarray, v: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """One step of order 4."""
    k1 = slope(u, v)
    k2 = slope(u + 0.5 * h * k1[0], v + 0.5 * h * k1[1])
    k3 = slope(u + 0.5 * h * k2[0], v + 0.5 * h * k2[1])
    k4 = slope(u + h * k3[0], v + h * k3[1])
    return (
        u + h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0]),
        v + h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1]),
    )


def lotka_path(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prey and predators in the years 0, 1, ..., one column per year, by Runge-Kutta of order 4 with fixed steps."""
    a, b, d, c, u, v = theta[:, :6].T
    h = 1.0 / LOTKA_STEPS

    def slope(u, v):
        return (a - b * v) * u, (d * u - c) * v

    path = [(u, v)]
    with np.errstate(all="ignore"):
        for _ in range(LOTKA_YEARS - 1):
            for _ in range(LOTKA_STEPS):
                u, v = runge_kutta(slope, u, v, h)
            path.append((u, v))
    return np.column_stack([p[0] for p in path]), np.column_stack([p[1] for p in path])


def lotka_volterra(dim: int) -> Problem:
    """With 8 parameters; with 6 the standard deviations of the noise are known."""
    data = columns("lotka_volterra.csv")

    def log_likelihood(theta):
        known = np.broadcast_to(LOTKA_TRUTH[6:], (len(theta), 2))
        sds = (theta[:, 6:] if dim == 8 else known).T
        total = np.zeros(len(theta))
        with np.errstate(all="ignore"):
            for path, observed, sd in zip(lotka_path(theta), (data["prey"], data["predators"]), sds):
                z = (np.log(observed) - np.log(path)) / sd[:, None]
                constant = len(observed) * (np.log(sd) + 0.5 * LOG_TAU) + np.log(observed).sum()
                total += -0.5 * (z**2).sum(1) - constant
        return np.where(np.isfinite(total), total, -np.inf)

    return Problem(f"lotka-volterra-{dim}", LOTKA_PRIOR[:dim], log_likelihood, LOTKA_TRUTH[:dim])


# An epidemic: susceptible and infected of 2000 people, s' = -b s i/n, i' = b s i/n - g i; the new cases of a day are negative
# binomial around s(t) - s(t + 1).

SIR_PEOPLE = 2000.0
SIR_DAYS = 56
SIR_STEPS = 4
SIR_SIZE = 50.0
SIR_TRUTH = [0.5, 0.28, 4.0]
SIR_PRIOR = [("log-normal", 0.3, 1.0), ("log-normal", 0.3, 1.0), ("log-normal", 10.0, 1.5)]


def sir_cases(theta: np.ndarray) -> np.ndarray:
    """Expected new cases, one column per day, by Runge-Kutta of order 4 with fixed steps."""
    b, g, i = theta.T
    s = SIR_PEOPLE - i
    h = 1.0 / SIR_STEPS

    def slope(s, i):
        new = b * s * i / SIR_PEOPLE
        return -new, new - g * i

    cases = []
    with np.errstate(all="ignore"):
        for _ in range(SIR_DAYS):
            before = s
            for _ in range(SIR_STEPS):
                s, i = runge_kutta(slope, s, i, h)
            cases.append(before - s)
    return np.column_stack(cases)


def sir() -> Problem:
    y = columns("sir.csv")["cases"]
    constant = (special.gammaln(y + SIR_SIZE) - special.gammaln(SIR_SIZE) - special.gammaln(y + 1)).sum()

    def log_likelihood(theta):
        mean = sir_cases(theta)
        with np.errstate(all="ignore"):
            # size log(size/(size + mean)) + y log(mean/(size + mean))
            total = constant + (SIR_SIZE * np.log(SIR_SIZE) + y * np.log(mean) - (SIR_SIZE + y) * np.log(SIR_SIZE + mean)).sum(1)
        return np.where(np.isfinite(total), total, -np.inf)

    return Problem("sir", SIR_PRIOR, log_likelihood, SIR_TRUTH)


# A sinusoid, p sin(2 pi t/P) + q cos(2 pi t/P), seen about once a day with noise of standard deviation 1.

SINUSOID_TRUTH = [1.6, -1.2, 7.3]
SINUSOID_PRIOR = [("normal", 0.0, 2.0), ("normal", 0.0, 2.0), ("log-uniform", 1.1, 40.0)]


def sinusoid() -> Problem:
    data = columns("sinusoid.csv")
    t, y = data["t"], data["y"]

    def log_likelihood(theta):
        p, q, period = theta.T
        angle = 2 * np.pi * t / period[:, None]
        residual = y - p[:, None] * np.sin(angle) - q[:, None] * np.cos(angle)
        return -0.5 * (residual**2).sum(1) - 0.5 * len(y) * LOG_TAU

    return Problem("sinusoid", SINUSOID_PRIOR, log_likelihood, SINUSOID_TRUTH)
