"""Reference values of emukit 0.5.1 and of 40-digit arithmetic, written to `emukit_reference.json` beside this file.

To run it (Python 3.11):

    python3.11 -m venv .venv
    .venv/bin/pip install emukit==0.5.1 GPy==1.13.2 numpy==1.26.4 scipy==1.12.0 mpmath==1.4.1
    .venv/bin/python emukit_reference.py

Each case fixes nodes, values and hyperparameters; nothing is optimised. "emukit" holds what emukit's own quadrature
kernel, `VanillaBayesianQuadrature` and `WSABIL` return over a GPy regression model; "mpmath" holds the same quantities
and those emukit lacks (the variance of WSABI-L, both moments of WSABI-M), from `exact_moments.py`, whose closed forms
are checked here against brute-force quadrature before anything is written.
"""

import json
import platform
import re
import warnings
from importlib.metadata import version
from pathlib import Path

import GPy
import numpy as np
from emukit.model_wrappers.gpy_quadrature_wrappers import create_emukit_model_from_gpy_model
from emukit.quadrature.measures import GaussianMeasure
from emukit.quadrature.methods import WSABIL, VanillaBayesianQuadrature

from exact_moments import brute_force, moments

warnings.filterwarnings("ignore", category=DeprecationWarning)

NOISE = 1e-10  # emukit's noise-free wrapper fixes the Gaussian noise to this
GPY_JITTER = 1e-8  # GPy's exact inference adds this to the diagonal, whatever the noise
LARGEST_CONDITION = 1e5
SMALLEST_VARIANCE = 1e-3  # of a query, in units of the kernel's: nearer to a node the digits cancel in any arithmetic
EMUKIT_TOLERANCE = 1e-11  # relative; a wrong convention (jitter, noise, alpha) shows at 1e-9 or more
BRUTE_TOLERANCE = 1e-10  # relative; variances lose three digits to cancellation, sums over 600 points one more

# name, dimension, nodes, mean, variance (a number: isotropic), lengthscales, kernel variance, adapt alpha, seed
CASES = [
    ("one_dimension_few", 1, 5, [0.0], 1.0, [0.9], 1.0, True, 1),
    ("one_dimension_shifted", 1, 9, [0.7], 2.25, [0.8], 2.5, True, 2),
    ("two_dimensions_isotropic", 2, 12, [0.3, -0.4], 1.0, [1.1, 1.1], 0.7, True, 3),
    ("two_dimensions_ard", 2, 20, [-0.5, 1.0], 4.0, [1.3, 2.1], 3.0, True, 4),
    ("two_dimensions_small_alpha", 2, 15, [0.0, 0.0], 1.0, [0.9, 1.2], 1.4, False, 5),
    ("three_dimensions_isotropic", 3, 18, [0.0, 0.0, 0.0], 1.0, [1.2, 1.2, 1.2], 1.0, True, 6),
    ("three_dimensions_ard_anisotropic", 3, 25, [0.2, -0.1, 0.5], [0.5, 1.5, 3.0], [0.8, 1.6, 2.0], 1.8, True, 7),
    ("four_dimensions_isotropic", 4, 30, [0.0, 0.5, -0.5, 0.25], 1.44, [1.7, 1.7, 1.7, 1.7], 0.4, True, 8),
    ("four_dimensions_ard", 4, 30, [0.0, 0.0, 0.0, 0.0], 4.0, [2.0, 3.5, 2.8, 4.5], 1.1, True, 9),
]


def spread_nodes(rng, count, mean, sd, lengthscales):
    """Draws from the measure, thinned so that no two nodes are within half a lengthscale of each other."""
    nodes = []
    while len(nodes) < count:
        x = mean + 1.2 * sd * rng.standard_normal(len(mean))
        if all(np.linalg.norm((x - y) / lengthscales) > 0.5 for y in nodes):
            nodes.append(x)
    return np.array(nodes)


def integrand(x, mean, sd):
    """A positive function with one peak away from the centre, on a floor so that the offset alpha matters."""
    u = (x - mean) / sd
    peak = np.exp(-0.5 * np.sum((u - 0.4) ** 2, axis=1) / 1.5)
    return 0.05 + peak * (1.0 + 0.3 * np.sin(1.7 * u[:, 0])) + 0.2 / (1.0 + np.sum(u**2, axis=1))


def emukit_outputs(nodes, values, queries, mean, variance, lengthscales, kernel_variance, adapt_alpha):
    dim = nodes.shape[1]
    isotropic = len(set(lengthscales)) == 1
    measure = GaussianMeasure(mean=mean, variance=variance)

    def base_gp():
        kernel = GPy.kern.RBF(
            dim, variance=kernel_variance, lengthscale=lengthscales[0] if isotropic else lengthscales, ARD=not isotropic
        )
        return create_emukit_model_from_gpy_model(GPy.models.GPRegression(nodes, values, kernel), measure=measure)

    plain = VanillaBayesianQuadrature(base_gp(), nodes, values)
    plain_mean, plain_variance = plain.integrate()
    wsabi = WSABIL(base_gp(), nodes, values, adapt_alpha=adapt_alpha)
    wsabi_mean, wsabi_variance = wsabi.integrate()
    assert wsabi_variance is None
    point_mean, point_variance, base_mean, base_variance = (a.ravel() for a in wsabi.predict_base(queries))
    return float(wsabi.bound), {
        "kernel_mean": plain.base_gp.kern.qK(nodes).ravel().tolist(),
        "initial_variance": float(plain.base_gp.kern.qKq()),
        "plain_mean": float(plain_mean),
        "plain_variance": float(plain_variance),
        "wsabi_l_mean": float(wsabi_mean),
        "base_mean": base_mean.tolist(),
        "base_variance": base_variance.tolist(),
        "pointwise_mean": point_mean.tolist(),
        "pointwise_variance": point_variance.tolist(),
        "log_marginal": float(wsabi.base_gp.gpy_model.log_likelihood()),
    }


def discrepancies(found, exact):
    """The largest relative difference for every shared name."""
    out = {}
    for name in found.keys() & exact.keys():
        a, b = np.atleast_1d(found[name]), np.atleast_1d(exact[name])
        out[name] = float(np.max(np.abs(a - b) / np.abs(b)))
    return dict(sorted(out.items()))


def build(name, dim, count, mean, variance, lengthscales, kernel_variance, adapt_alpha, seed):
    rng = np.random.default_rng(seed)
    mean, lengthscales = np.array(mean), np.array(lengthscales)
    variances = np.broadcast_to(np.asarray(variance, dtype=float), (dim,)).copy()
    sd = np.sqrt(variances)
    nodes = spread_nodes(rng, count, mean, sd, lengthscales)
    values = integrand(nodes, mean, sd)

    diagonal = NOISE + GPY_JITTER
    scaled = nodes / lengthscales
    gram = kernel_variance * np.exp(-0.5 * np.sum((scaled[:, None] - scaled) ** 2, axis=2)) + diagonal * np.eye(count)
    condition = float(np.linalg.cond(gram))
    assert condition < LARGEST_CONDITION, (name, condition)

    queries = []
    while len(queries) < 4:
        x = mean + 1.2 * sd * rng.standard_normal(dim)
        k = kernel_variance * np.exp(-0.5 * np.sum((scaled - x / lengthscales) ** 2, axis=1))
        if kernel_variance - k @ np.linalg.solve(gram, k) > SMALLEST_VARIANCE * kernel_variance:
            queries.append(x)
    queries = np.array(queries)

    measure_variance = variance if isinstance(variance, float) else variances
    alpha, emukit = emukit_outputs(
        nodes, values[:, None], queries, mean, measure_variance, lengthscales, kernel_variance, adapt_alpha
    )
    inputs = (nodes, values, queries, mean, variances, lengthscales, kernel_variance, diagonal, alpha)
    exact = moments(*inputs)

    # emukit's predictive variances contain the observation noise; the rest must agree as it stands.
    noiseless = dict(emukit)
    noiseless["base_variance"] = [v - NOISE for v in emukit["base_variance"]]
    noiseless["pointwise_variance"] = [
        v - m * m * NOISE for v, m in zip(emukit["pointwise_variance"], emukit["base_mean"])
    ]
    difference = discrepancies(noiseless, exact)
    assert max(difference.values()) < EMUKIT_TOLERANCE, (name, difference)
    brute = discrepancies(brute_force(*inputs), exact)
    assert max(brute.values()) < BRUTE_TOLERANCE, (name, brute)
    worst, worst_brute = max(difference.values()), max(brute.values())
    print(f"{name}: cond {condition:.1e}, emukit within {worst:.1e}, brute force within {worst_brute:.1e}")

    return {
        "name": name,
        "dim": dim,
        "nodes": nodes.tolist(),
        "values": values.tolist(),
        "queries": queries.tolist(),
        "measure_mean": mean.tolist(),
        "measure_variance": variances.tolist(),
        "lengthscales": lengthscales.tolist(),
        "kernel_variance": kernel_variance,
        "diagonal": diagonal,
        "noise": NOISE,
        "alpha": alpha,
        "condition": condition,
        "emukit": emukit,
        "mpmath": exact,
        "largest_relative_difference": difference,
    }


def main():
    cases = [build(*case) for case in CASES]
    provenance = {
        "script": "emukit_reference.py",
        "python": platform.python_version(),
        "packages": {p: version(p) for p in ["emukit", "GPy", "numpy", "scipy", "mpmath"]},
        "conventions": [
            "K has `diagonal` = 1e-10 (emukit's noise) + 1e-8 (added by GPy's exact inference) on its diagonal.",
            "base_variance and pointwise_variance of emukit include the noise: C + noise and m²(C + noise); "
            "those of mpmath are C and m²C.",
            "`alpha` is added to the WSABI-L mean: alpha + ½wᵀPw. It is 0.8 min(values), or 1e-8 when not adapted.",
            "emukit returns no variance for WSABI-L and has no WSABI-M: both are under mpmath only.",
            "The plain model is a zero-mean GP on the values themselves; WSABI-L on sqrt(2(values − alpha)).",
            "log_marginal is that of the warped values under the GP of WSABI-L, without a Jacobian.",
            "largest_relative_difference compares emukit, its noise taken off, with mpmath.",
        ],
    }
    path = Path(__file__).with_suffix(".json")
    text = json.dumps({"provenance": provenance, "cases": cases}, indent=1, ensure_ascii=False)
    one_line_each = re.sub(r"\[\s+([-\d][^\[\]\"]*?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text)
    path.write_text(one_line_each + "\n")


if __name__ == "__main__":
    main()
