"""PyVBMC on the problems of src/problems/world.

    pip install "pyvbmc>=1.5"
    python3 pyvbmc_zoo.py NAME [--seed S] [--evaluations N] [--noise SD]

Prints one line of JSON: the evaluations, the lower bound on log Z, its standard deviation, the error of the bound, whether PyVBMC
calls the run converged, and the processor time in seconds without and within the likelihood. The options are PyVBMC's own, but for
the budget if one is given. Its plausible box is the middle 68 % of the prior, and it starts at a draw from the middle
90 %. Positive parameters are given by their logarithms. Where the likelihood is lower than FLOOR or zero, PyVBMC is told FLOOR,
because it takes finite values only. With noise it is told the standard deviation.
"""

import argparse
import importlib.metadata
import json
import logging
import pathlib
import sys
import time

import numpy as np
from scipy import stats

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))

import world  # noqa: E402
import world_evidence  # noqa: E402

FLOOR = -1e6

# From world_evidence.py; of the four modes less than 1e-7 is outside of the square.
SAMPLED = {
    "logistic-5": -102.85865,
    # N((0.5, -1); 0, 1.25 I).
    "gaussian-2": -0.5 - np.log(2.5 * np.pi),
    "four-modes": -np.log(400.0),
    "sir": -175.953218,
    "lotka-volterra-6": -137.17435,
    "lotka-volterra-8": -142.15236,
}


def problems():
    made = [lambda d=d, w=w: world.linear(d, w) for d in world.DIMS for w in world.WIDTHS]
    names = [f"linear-{d}-{w}" for d in world.DIMS for w in world.WIDTHS]
    table = dict(zip(names, made))
    table |= {"logistic-5": world.logistic, "four-modes": world.four_modes, "rosenbrock": world.rosenbrock}
    table |= {"gaussian-2": world.gaussian_2, "sir": world.sir, "sinusoid": world.sinusoid}
    table |= {f"lotka-volterra-{d}": lambda d=d: world.lotka_volterra(d) for d in (6, 8)}
    return table


def truth(name):
    if name.startswith("linear-"):
        return world_evidence.log_evidence_linear(*map(int, name.split("-")[1:]))
    if name == "rosenbrock":
        return world_evidence.log_evidence_rosenbrock()
    if name == "sinusoid":
        return world_evidence.log_evidence_sinusoid(40_000)[0]
    return float(SAMPLED[name])


class Coordinates:
    """Where PyVBMC works: the parameters, or the logarithms of positive ones."""

    def __init__(self, prior):
        self.logarithmic = np.array([kind.startswith("log-") for kind, _, _ in prior])
        self.marginals = [self.marginal(*family) for family in prior]
        bounds = [m.support() for m in self.marginals]
        self.low, self.high = (np.array([[b[k] for b in bounds]]) for k in (0, 1))
        self.plausible = [np.array([[m.ppf(p) for m in self.marginals]]) for p in (0.16, 0.84)]

    @staticmethod
    def marginal(kind, a, b):
        match kind:
            case "normal":
                return stats.norm(a, b)
            case "log-normal":
                return stats.norm(np.log(a), b)
            case "uniform":
                return stats.uniform(a, b - a)
            case "log-uniform":
                return stats.uniform(np.log(a), np.log(b / a))
        raise ValueError(kind)

    def log_prior(self, x):
        return sum(m.logpdf(v) for m, v in zip(self.marginals, x))

    def to_theta(self, x):
        return np.where(self.logarithmic, np.exp(x), x)

    def draw(self, random):
        return np.array([[m.ppf(random.uniform(0.05, 0.95)) for m in self.marginals]])


def run(problem, seed, evaluations=None, noise=0.0):
    """PyVBMC on a problem: evaluations, bound and its standard deviation, whether it calls that converged, and seconds."""
    # Here, because it takes seconds to load.
    import pyvbmc

    logging.disable(logging.WARNING)
    coordinates = Coordinates(problem.prior)
    random = np.random.default_rng(seed)
    within = 0.0

    def log_joint(x):
        nonlocal within
        begin = time.process_time()
        x = np.ravel(x)
        value = float(problem.log_likelihood(coordinates.to_theta(x)[None, :])[0]) + coordinates.log_prior(x)
        within += time.process_time() - begin
        value = max(value, FLOOR)
        return (value + noise * random.standard_normal(), noise) if noise else value

    settings = {"display": "off", "show_tips": False, "specify_target_noise": noise > 0}
    if evaluations:
        settings["max_fun_evals"] = evaluations
    begin = time.process_time()
    vbmc = pyvbmc.VBMC(
        log_joint, coordinates.draw(random), coordinates.low, coordinates.high, *coordinates.plausible, settings, seed=seed
    )
    _, results = vbmc.optimize()
    total = time.process_time() - begin
    return {
        "evaluations": int(results["func_count"]),
        "elbo": float(results["elbo"]),
        "elbo_sd": float(results["elbo_sd"]),
        "converged": bool(results["success_flag"]),
        "seconds": total - within,
        "seconds_in_likelihood": within,
    }


def main():
    table = problems()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", choices=sorted(table))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--evaluations", type=int, help="the budget; PyVBMC's own, 50 (d + 2), by default")
    parser.add_argument("--noise", type=float, default=0.0, help="the standard deviation of noise on the log-likelihood")
    options = parser.parse_args()

    result = run(table[options.problem](), options.seed, options.evaluations, options.noise)
    line = {
        "problem": options.problem,
        "seed": options.seed,
        "noise": options.noise,
        **result,
        "error": result["elbo"] - truth(options.problem),
        "pyvbmc": importlib.metadata.version("pyvbmc"),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
