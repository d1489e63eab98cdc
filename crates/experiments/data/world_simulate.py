"""Simulates the data behind src/problems/world.

    python3 world_simulate.py       # numpy 2.4; writes the CSV files beside it
"""

import numpy as np

import world


def write(name, columns):
    with open(world.HERE / name, "w") as file:
        file.write(",".join(columns) + "\n")
        for row in zip(*columns.values()):
            file.write(",".join(f"{v:g}" if isinstance(v, (int, np.integer)) else f"{v:.4f}" for v in row) + "\n")


def correlated_regressors(random, rows, count, correlation):
    """Columns x1, x2, ..., each with this correlation to the next, standard normal, to four digits."""
    x = random.standard_normal((rows, count))
    for j in range(1, count):
        x[:, j] = correlation * x[:, j - 1] + np.sqrt(1 - correlation**2) * x[:, j]
    return {f"x{j + 1}": np.round(x[:, j], 4) for j in range(count)}


def linear():
    """One response for each dimension and width, with coefficients drawn from the prior: the posterior is off the centre."""
    random = np.random.default_rng(20260101)
    data = correlated_regressors(random, world.LINEAR_ROWS, max(world.DIMS) - 1, 0.8)
    for dim in world.DIMS:
        matrix = world.design(data, dim)
        for width in world.WIDTHS:
            coefficients = width * np.array(world.posterior_sds(matrix)) * random.standard_normal(dim)
            data[f"y_{dim}_{width}"] = matrix @ coefficients + random.standard_normal(world.LINEAR_ROWS)
    write("linear.csv", data)


def logistic():
    random = np.random.default_rng(20260102)
    data = correlated_regressors(random, 150, 4, 0.5)
    logit = world.design(data, 5) @ np.array([-0.5, 1.2, -0.8, 0.6, 0.3])
    data["y"] = (random.uniform(size=150) < 1 / (1 + np.exp(-logit))).astype(int)
    write("logistic.csv", data)


def lotka_volterra():
    random = np.random.default_rng(20260103)
    prey, predators = world.lotka_path(np.array([world.LOTKA_TRUTH]))
    noise = [sd * random.standard_normal(world.LOTKA_YEARS) for sd in world.LOTKA_TRUTH[6:]]
    seen = {"prey": prey[0] * np.exp(noise[0]), "predators": predators[0] * np.exp(noise[1])}
    write("lotka_volterra.csv", {"year": np.arange(world.LOTKA_YEARS), **seen})


def sir():
    random = np.random.default_rng(20260104)
    mean = world.sir_cases(np.array([world.SIR_TRUTH]))[0]
    cases = random.negative_binomial(world.SIR_SIZE, world.SIR_SIZE / (world.SIR_SIZE + mean))
    write("sir.csv", {"day": np.arange(1, world.SIR_DAYS + 1), "cases": cases})


def sinusoid():
    """Once a night, a few hours earlier or later, some nights lost to clouds: one cycle a day more or less fits nearly as well."""
    random = np.random.default_rng(20260105)
    night = np.sort(random.choice(36, size=26, replace=False))
    t = np.round(night + random.normal(0.0, 0.02, size=26), 4)
    p, q, period = world.SINUSOID_TRUTH
    angle = 2 * np.pi * t / period
    write("sinusoid.csv", {"t": t, "y": p * np.sin(angle) + q * np.cos(angle) + random.standard_normal(26)})


if __name__ == "__main__":
    linear()
    logistic()
    lotka_volterra()
    sir()
    sinusoid()
