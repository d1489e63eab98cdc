"""Seconds that emukit's WSABI-L loop takes to choose one point and refit, on a four-dimensional mixture.

    python3.11 -m venv .venv
    .venv/bin/pip install emukit==0.5.1 GPy==1.13.2 numpy==1.26.4 scipy==1.12.0
    .venv/bin/python emukit_loop.py                   # one JSON object on standard output
    .venv/bin/python emukit_loop.py --write-mixture   # writes mixture4d.json afresh

The loop is `WSABILLoop` with every default: an isotropic RBF kernel, GPy's hyperparameter search at each iteration,
uncertainty sampling maximised from the best of 1000 uniform points. It starts from N points of the prior. A round lasts
from the end of one evaluation of the integrand to the start of the next, so the integrand itself is never counted; the
first round, a hyperparameter search from a cold start, is left out of the median. One thread, unless OMP_NUM_THREADS
and OPENBLAS_NUM_THREADS say otherwise.

Two scales of the integrand are timed, because emukit's search has an absolute gradient tolerance (1e-5). "density" is
the mixture as it stands, largest value about 0.002: its acquisition is below 1e-10, L-BFGS stops where it starts, and the
best of the 1000 uniform points is taken. "scaled" is 1e6 times the mixture: the search climbs. `climbs` is the median
number of evaluations of the acquisition's gradient in a round; 1 means that no step was taken.
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import json
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

MIXTURE = Path(__file__).with_name("mixture4d.json")
SIZES = (50, 100, 200, 400)
ROUNDS = 7
SCALES = {"density": 1.0, "scaled": 1e6}


def log_sum_exp(a, axis=None):
    top = np.max(a, axis=axis, keepdims=True)
    return np.squeeze(top, axis=axis) + np.log(np.sum(np.exp(a - top), axis=axis))


def log_normal(squared_distance, variance, dim):
    return -0.5 * (squared_distance / variance + dim * np.log(2 * np.pi * variance))


def write_mixture():
    """Twelve isotropic Gaussians of equal weight: variances U(1, 4), means U[−3, 3]⁴; prior N(0, 4I); log Z exact."""
    rng = np.random.default_rng(20)
    dim, count, prior_variance = 4, 12, 4.0
    means = rng.uniform(-3.0, 3.0, (count, dim))
    variances = rng.uniform(1.0, 4.0, count)
    # ∫ N(x; m, v) N(x; 0, p) dx = N(m; 0, v + p)
    log_z = log_sum_exp(log_normal(np.sum(means**2, axis=1), variances + prior_variance, dim)) - np.log(count)
    fields = {
        "dim": dim,
        "prior_mean": [0.0] * dim,
        "prior_variance": prior_variance,
        "weights": [1.0 / count] * count,
        "means": means.tolist(),
        "variances": variances.tolist(),
        "log_z": float(log_z),
    }
    MIXTURE.write_text("{\n" + ",\n".join(f' "{k}": {json.dumps(v)}' for k, v in fields.items()) + "\n}\n")


def integrand(mixture):
    means, variances = np.array(mixture["means"]), np.array(mixture["variances"])
    log_weights = np.log(mixture["weights"])

    def density(x):
        squared = np.sum((x[:, None, :] - means) ** 2, axis=2)
        return np.exp(log_sum_exp(log_weights + log_normal(squared, variances, mixture["dim"]), axis=1))[:, None]

    return density


def rounds(mixture, start_size, count, scale):
    """The seconds and the gradient evaluations of each of `count` rounds, and the loop's log Z after them."""
    import GPy
    from emukit.model_wrappers.gpy_quadrature_wrappers import create_emukit_model_from_gpy_model
    from emukit.quadrature.loop import WSABILLoop
    from emukit.quadrature.measures import GaussianMeasure
    from emukit.quadrature.methods import WSABIL

    density = integrand(mixture)
    dim, mean, variance = mixture["dim"], np.array(mixture["prior_mean"]), mixture["prior_variance"]
    np.random.seed(start_size)  # emukit draws from numpy's global state
    x = mean + np.sqrt(variance) * np.random.randn(start_size, dim)
    y = scale * density(x)
    gpy_model = GPy.models.GPRegression(x, y, GPy.kern.RBF(dim))
    base = create_emukit_model_from_gpy_model(gpy_model, measure=GaussianMeasure(mean, variance))
    loop = WSABILLoop(WSABIL(base, x, y))

    acquisition = loop.candidate_point_calculator.acquisition
    with_gradients = acquisition.evaluate_with_gradients
    seconds, climbs, calls = [], [], 0

    def counted(points):
        nonlocal calls
        calls += 1
        return with_gradients(points)

    def timed(points):
        nonlocal left, calls
        seconds.append(time.perf_counter() - left)
        climbs.append(calls)
        values = scale * density(points)
        calls, left = 0, time.perf_counter()
        return values

    acquisition.evaluate_with_gradients = counted
    left = time.perf_counter()
    loop.run_loop(timed, count)
    return seconds, climbs, float(np.log(loop.model.integrate()[0]) - np.log(scale))


def main():
    warnings.filterwarnings("ignore")
    mixture = json.loads(MIXTURE.read_text())
    out = {}
    for name, scale in SCALES.items():
        fields = ("seconds_per_point", "first_round", "climbs", "log_z")
        table = out[name] = {field: {} for field in fields}
        for n in SIZES:
            seconds, climbs, log_z = rounds(mixture, n, ROUNDS + 1, scale)
            row = (float(np.median(seconds[1:])), seconds[0], float(np.median(climbs[1:])), log_z)
            for field, value in zip(fields, row):
                table[field][str(n)] = value
    out["exact_log_z"] = mixture["log_z"]
    out["threads"] = os.environ["OPENBLAS_NUM_THREADS"]
    out["versions"] = {p: version(p) for p in ("emukit", "GPy", "numpy", "scipy")}
    print(json.dumps(out))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--write-mixture", action="store_true", help="write mixture4d.json instead of timing")
    if parser.parse_args().write_mixture:
        write_mixture()
    else:
        main()
