"""The evidence of a Gaussian process on the flow of the Nile, by brute force.

    python3 nile_evidence.py        # numpy 2.x; prints log Z for grids of several steps

The model is that of src/problems/real.rs: years in decades from 1920.5, standardised flows, an SE kernel with noise, independent
normal priors on (log lengthscale, log variance, log noise variance). For one lengthscale the kernel matrix has one
eigendecomposition, after which each pair of variances costs O(n); the trapezoidal rule is taken over standard normal coordinates,
where it converges exponentially. The log-likelihood at the prior means is printed too, by a dense determinant and solve.
"""

import csv
import pathlib

import numpy as np

PRIOR = [(0.5, 1.0), (-0.5, 1.0), (-0.5, 1.0)]
REACH = 9.0

rows = list(csv.DictReader(open(pathlib.Path(__file__).with_name("nile.csv"))))
x = np.array([(float(r["year"]) - 1920.5) / 10 for r in rows])
y = np.array([float(r["volume"]) for r in rows])
y = (y - y.mean()) / y.std()
n = len(y)
square = (x[:, None] - x[None, :]) ** 2


def log_likelihood(theta):
    scale, variance, noise = np.exp(theta)
    k = variance * np.exp(-0.5 * square / scale**2) + noise * np.eye(n)
    return -0.5 * (y @ np.linalg.solve(k, y) + np.linalg.slogdet(k)[1] + n * np.log(2 * np.pi))


def log_evidence(step):
    u = np.arange(-np.floor(REACH / step), np.floor(REACH / step) + 1) * step
    weight = -0.5 * u**2 + np.log(step) - 0.5 * np.log(2 * np.pi)
    (m0, s0), (m1, s1), (m2, s2) = PRIOR
    variance, noise = np.exp(m1 + s1 * u), np.exp(m2 + s2 * u)
    terms = []
    for u0, w0 in zip(u, weight):
        values, vectors = np.linalg.eigh(np.exp(-0.5 * square / np.exp(m0 + s0 * u0) ** 2))
        values, white = np.maximum(values, 0.0), (vectors.T @ y) ** 2
        total = variance[:, None, None] * values + noise[None, :, None]
        logs = -0.5 * ((white / total).sum(-1) + np.log(total).sum(-1) + n * np.log(2 * np.pi))
        terms.append(w0 + logs + weight[:, None] + weight[None, :])
    terms = np.concatenate([t.ravel() for t in terms])
    top = terms.max()
    return top + np.log(np.exp(terms - top).sum())


if __name__ == "__main__":
    print("log-likelihood at the prior means:", repr(float(log_likelihood(np.array([m for m, _ in PRIOR])))))
    for step in (0.3, 0.2, 0.1):
        print("step", step, "log Z", repr(float(log_evidence(step))))
