"""Single-threaded numpy and scipy timings of the numerical kernels that the criterion benches time in Rust.

    python3.11 -m venv .venv && .venv/bin/pip install -r requirements.txt
    .venv/bin/python numpy_bench.py           # one JSON object of processor seconds: {"fit": {"100": 0.001, …}, …}
    .venv/bin/python numpy_bench.py --check   # the same functions against finite differences and brute force

Squared-exponential kernel with four lengthscales, N nodes from N(0, I) in four dimensions, jitter 1e-10:

- fit: one log marginal likelihood and its gradient in log σ² and the four log λ, the distances and kernel included
- predict: mean, variance and the gradients of both at 64 points, factor and weights given
- integrate: mean and variance of Z under WSABI-L for the measure N(0, I), factor and weights given
- append: 16 rows to a factor of N rows, the new kernel columns given, into a new array
- gemm: 1024 × 1024 × 1024 product, in seconds and in GFlop/s: what the machine can do on one thread
"""

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import time
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.spatial.distance import cdist

SIZES = (100, 400, 1600)
DIM = 4
QUERIES = 64
APPENDED = 16
JITTER = 1e-10
ALPHA = 0.05


@dataclass
class Kernel:
    log_variance: float
    log_scales: np.ndarray

    @property
    def variance(self):
        return np.exp(self.log_variance)

    @property
    def scales(self):
        return np.exp(self.log_scales)

    def gram(self, x, y):
        k = cdist(x / self.scales, y / self.scales, "sqeuclidean")
        k *= -0.5
        np.exp(k, out=k)
        k *= self.variance
        return k


def with_jitter(gram):
    out = gram.copy(order="F")
    out.flat[:: len(out) + 1] += JITTER
    return out


def fit(kernel, x, g):
    """Log marginal likelihood of g and its gradient in (log σ², log λ₁, …, log λ_d). O(N³)."""
    n = len(x)
    gram = kernel.gram(x, x)
    factor, lower = cho_factor(with_jitter(gram), lower=True, overwrite_a=True, check_finite=False)
    w = cho_solve((factor, lower), g, check_finite=False)
    value = -0.5 * (g @ w) - np.log(np.diag(factor)).sum() - 0.5 * n * np.log(2 * np.pi)

    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)  # the lower triangle only
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    slope = (np.outer(w, w) - inverse) * gram
    # Σᵢⱼ Aᵢⱼ (xᵢ − xⱼ)² = 2 (Σᵢ xᵢ² Σⱼ Aᵢⱼ − xᵀAx) for symmetric A: products instead of d matrices of differences
    scaled = x / kernel.scales
    rows = slope.sum(axis=1)
    scale_gradient = rows @ scaled**2 - np.einsum("nd,nd->d", scaled, slope @ scaled)
    return value, np.concatenate([[0.5 * rows.sum()], scale_gradient])


def predict(kernel, x, factor, w, queries):
    """Mean and variance at M points, and their gradients, M × d each. O(N²M)."""
    k = np.asfortranarray(kernel.gram(x, queries))
    half = solve_triangular(factor, k, lower=True, check_finite=False)
    solved = solve_triangular(factor, half, lower=True, trans="T", check_finite=False)
    mean = w @ k
    variance = kernel.variance - np.einsum("nm,nm->m", half, half)

    def pull(weighted):  # Σₙ weightedₙₘ (xₙ − qₘ) / λ²
        return (weighted.T @ x - weighted.sum(axis=0)[:, None] * queries) / kernel.scales**2

    mean_gradient = pull(w[:, None] * k)
    variance_gradient = -2.0 * pull(solved * k)
    return mean, variance, mean_gradient, variance_gradient


def integrate(kernel, x, factor, w, alpha):
    """Mean and variance of Z = ∫ α + ½g² dN(0, I) under WSABI-L. O(N²)."""
    lam2 = kernel.scales**2
    squares = x**2

    # Both exponents are quadratic forms in (xᵢ, xⱼ): aᵢ + aⱼ + xᵢᵀ diag(c) xⱼ.
    wide = 0.125 / (lam2 / 2 + 1)
    own = squares @ (-0.25 / lam2 - wide)
    product = (x * (0.5 / lam2 - 2 * wide)) @ x.T
    product += own[:, None]
    product += own
    np.exp(product, out=product)
    pw = (kernel.variance**2 / np.sqrt(np.prod(1 + 2 / lam2))) * (product @ w)

    p, r = 2 / lam2 + 1, -1 / lam2
    det = p**2 - r**2
    own = squares @ (0.5 * (p / (det * lam2**2) - 1 / lam2))
    chain = (x * (-r / (det * lam2**2))) @ x.T
    chain += own[:, None]
    chain += own
    np.exp(chain, out=chain)
    quadratic = kernel.variance**3 / np.sqrt(np.prod(det)) * (w @ (chain @ w))

    half = solve_triangular(factor, pw, lower=True, check_finite=False)
    return alpha + 0.5 * (w @ pw), quadratic - half @ half


def append(factor, cross, corner):
    """The factor of [[K, cross], [crossᵀ, corner]] from that of K. O(N²M)."""
    n, m = cross.shape
    out = np.zeros((n + m, n + m), order="F")
    out[:n, :n] = factor
    half = solve_triangular(factor, cross, lower=True, check_finite=False)
    out[n:, :n] = half.T
    out[n:, n:] = cholesky(corner - half.T @ half, lower=True, check_finite=False)
    return out


@dataclass
class Problem:
    kernel: Kernel
    x: np.ndarray
    g: np.ndarray
    factor: np.ndarray
    w: np.ndarray
    queries: np.ndarray
    cross: np.ndarray
    corner: np.ndarray


def problem(n):
    rng = np.random.default_rng(n)
    kernel = Kernel(np.log(1.3), np.log(np.array([0.9, 1.1, 1.3, 1.6])))
    x = rng.standard_normal((n, DIM))
    g = np.sqrt(2.0) * np.exp(-0.25 * np.sum((x - 0.3) ** 2, axis=1))
    factor = np.asfortranarray(cholesky(with_jitter(kernel.gram(x, x)), lower=True))
    new = rng.standard_normal((APPENDED, DIM))
    return Problem(
        kernel=kernel,
        x=x,
        g=g,
        factor=factor,
        w=cho_solve((factor, True), g),
        queries=rng.standard_normal((QUERIES, DIM)),
        cross=np.asfortranarray(kernel.gram(x, new)),
        corner=with_jitter(kernel.gram(new, new)),
    )


def fastest_seconds(run, least=0.5, fewest=5):
    """Processor seconds of the fastest of the calls that fit into `least` seconds, of `fewest` at least.

    Processor time and the fastest call, because what else the machine does can only add.
    """
    run()
    times = []
    while sum(times) < least or len(times) < fewest:
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def bench():
    out = {"fit": {}, "predict": {}, "integrate": {}, "append": {}}
    for n in SIZES:
        p = problem(n)
        runs = {
            "fit": lambda: fit(p.kernel, p.x, p.g),
            "predict": lambda: predict(p.kernel, p.x, p.factor, p.w, p.queries),
            "integrate": lambda: integrate(p.kernel, p.x, p.factor, p.w, ALPHA),
            "append": lambda: append(p.factor, p.cross, p.corner),
        }
        for name, run in runs.items():
            out[name][str(n)] = fastest_seconds(run)
    side = 1024
    a, b = np.random.default_rng(0).standard_normal((2, side, side))
    seconds = fastest_seconds(lambda: a @ b)
    out["gemm"] = {str(side): seconds, "gflops": 2 * side**3 / seconds / 1e9}
    out["versions"] = {"numpy": np.__version__, "scipy": scipy.__version__}
    return out


def central_differences(function, at, step=1e-5):
    columns = []
    for i in range(len(at)):
        ahead, behind = at.copy(), at.copy()
        ahead[i] += step
        behind[i] -= step
        columns.append((function(ahead) - function(behind)) / (2 * step))
    return np.stack(columns, axis=-1)


def check():
    """Raises AssertionError when a timed function is wrong. 60 nodes: few enough for brute force."""
    p = problem(60)
    gram = with_jitter(p.kernel.gram(p.x, p.x))

    value, gradient = fit(p.kernel, p.x, p.g)
    density = scipy.stats.multivariate_normal(cov=gram).logpdf(p.g)
    np.testing.assert_allclose(value, density, rtol=1e-9)  # the two factor K differently: cond(K) roundings apart
    at = np.concatenate([[p.kernel.log_variance], p.kernel.log_scales])
    numeric = central_differences(lambda t: fit(Kernel(t[0], t[1:]), p.x, p.g)[0], at)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6)  # truncation is of order step² = 1e-10, rounding 1e-9

    mean, variance, mean_gradient, variance_gradient = predict(p.kernel, p.x, p.factor, p.w, p.queries)
    k = p.kernel.gram(p.x, p.queries)
    np.testing.assert_allclose(mean, k.T @ np.linalg.solve(gram, p.g), rtol=1e-9, atol=1e-11)
    exact = p.kernel.variance - np.sum(k * np.linalg.solve(gram, k), axis=0)
    np.testing.assert_allclose(variance, exact, rtol=1e-9, atol=1e-11)
    for i in range(8):
        one = lambda q: np.array([v[0] for v in predict(p.kernel, p.x, p.factor, p.w, q[None])[:2]])
        numeric = central_differences(one, p.queries[i])
        np.testing.assert_allclose(mean_gradient[i], numeric[0], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(variance_gradient[i], numeric[1], rtol=1e-6, atol=1e-8)

    # P and D factorise over the dimensions: each factor by a Gauss-Legendre rule on ±12 standard deviations
    t, weight = np.polynomial.legendre.leggauss(400)
    grid, mass = 12 * t, 12 * weight * np.exp(-72 * t**2) / np.sqrt(2 * np.pi)
    product, chain = np.full((60, 60), p.kernel.variance**2), np.full((60, 60), p.kernel.variance**3)
    for column, scale in zip(p.x.T, p.kernel.scales):
        near = np.exp(-0.5 * ((column[:, None] - grid) / scale) ** 2)
        among = np.exp(-0.5 * ((grid[:, None] - grid) / scale) ** 2)
        product *= (near * mass) @ near.T
        chain *= (near * mass) @ among @ (near * mass).T
    pw = product @ p.w
    z_mean, z_variance = integrate(p.kernel, p.x, p.factor, p.w, ALPHA)
    np.testing.assert_allclose(z_mean, ALPHA + 0.5 * p.w @ pw, rtol=1e-9)
    exact = p.w @ chain @ p.w - pw @ np.linalg.solve(gram, pw)
    np.testing.assert_allclose(z_variance, exact, rtol=1e-6)  # a difference of two nearly equal numbers

    whole = append(p.factor, p.cross, p.corner)
    expected = np.block([[gram, p.cross], [p.cross.T, p.corner]])
    np.testing.assert_allclose(whole @ whole.T, expected, atol=1e-13)
    assert not np.triu(whole, 1).any()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="verify the timed functions instead of timing them")
    if parser.parse_args().check:
        import scipy.stats

        check()
        print("all checks passed")
    else:
        print(json.dumps(bench()))
