"""Bayesian quadrature moments in 40-digit arithmetic, and a brute-force check of their closed forms.

The formulas are those of MATH.md, sections 2 and 3, for the squared-exponential kernel and a Gaussian measure with
diagonal covariance, where every integral is a product over the dimensions. Inputs are doubles taken as exact numbers;
outputs are rounded to the nearest double.
"""

import numpy as np
from mpmath import mp, mpf

mp.dps = 40


def _exact(values):
    return [mpf(float(v)) for v in values]


def _kernel(x, y, lam2, variance):
    return variance * mp.exp(-sum((a - b) ** 2 / l for a, b, l in zip(x, y, lam2)) / 2)


def _mean(x, b, s, lam2, variance):
    scale = mp.mpf(1)
    for si, li in zip(s, lam2):
        scale *= 1 + si / li
    return variance / mp.sqrt(scale) * mp.exp(-sum((a - c) ** 2 / (l + t) for a, c, l, t in zip(x, b, lam2, s)) / 2)


def _product(x, y, b, s, lam2, variance):
    out = variance**2
    for a, c, m, t, l in zip(x, y, b, s, lam2):
        centre = (a + c) / 2
        out *= mp.exp(-((a - c) ** 2) / (4 * l) - (centre - m) ** 2 / (2 * (l / 2 + t))) / mp.sqrt(1 + 2 * t / l)
    return out


def _chain(x, y, b, s, lam2, variance):
    out = variance**3
    for a, c, m, t, l in zip(x, y, b, s, lam2):
        p, r = 2 / l + 1 / t, -1 / l
        det = p * p - r * r
        h0, h1 = a / l + m / t, c / l + m / t
        quadratic = (p * h0 * h0 - 2 * r * h0 * h1 + p * h1 * h1) / det
        constant = a * a / l + c * c / l + 2 * m * m / t
        out *= mp.exp((quadratic - constant) / 2) / (mp.sqrt(det) * t)
    return out


def _double(s, lam2, factor):
    out = mp.mpf(1)
    for t, l in zip(s, lam2):
        out /= mp.sqrt(1 + factor * t / l)
    return out


def _trace(a):
    return sum(a[i, i] for i in range(a.rows))


def _floats(values):
    return [float(v) for v in values]


def moments(nodes, values, queries, mean, variances, lengthscales, kernel_variance, diagonal, alpha):
    """Every quantity the reference file compares, at working precision `mp.dps`."""
    x = [_exact(row) for row in nodes]
    n = len(x)
    b, s = _exact(mean), _exact(variances)
    lam2 = [v**2 for v in _exact(lengthscales)]
    var, diag, alpha = mpf(float(kernel_variance)), mpf(float(diagonal)), mpf(float(alpha))
    y = mp.matrix(_exact(values))
    g = mp.matrix([mp.sqrt(2 * (v - alpha)) for v in y])

    gram = mp.matrix(n, n)
    prod = mp.matrix(n, n)
    chain = mp.matrix(n, n)
    for i in range(n):
        for j in range(i + 1):
            gram[i, j] = gram[j, i] = _kernel(x[i], x[j], lam2, var) + (diag if i == j else 0)
            prod[i, j] = prod[j, i] = _product(x[i], x[j], b, s, lam2, var)
            chain[i, j] = chain[j, i] = _chain(x[i], x[j], b, s, lam2, var)
    inv = mp.inverse(gram)
    z = mp.matrix([_mean(xi, b, s, lam2, var) for xi in x])
    initial = var * _double(s, lam2, 2)

    plain_weights = inv * y
    w = inv * g
    pw = prod * w
    l_mean = alpha + (w.T * pw)[0] / 2
    l_var = (w.T * chain * w)[0] - (pw.T * inv * pw)[0]
    inv_prod = inv * prod
    m_mean = l_mean + (var - _trace(inv_prod)) / 2
    squares = var**2 * _double(s, lam2, 4)
    m_var = l_var + (squares - 2 * _trace(inv * chain) + _trace(inv_prod * inv_prod)) / 2

    base_mean, base_var = [], []
    for q in queries:
        k = mp.matrix([_kernel(_exact(q), xi, lam2, var) for xi in x])
        base_mean.append((k.T * w)[0])
        base_var.append(var - (k.T * inv * k)[0])

    lower = mp.cholesky(gram)
    log_det = 2 * sum(mp.log(lower[i, i]) for i in range(n))
    log_marginal = -((g.T * w)[0] + log_det + n * mp.log(2 * mp.pi)) / 2

    return {
        "kernel_mean": _floats(z),
        "initial_variance": float(initial),
        "plain_mean": float((z.T * plain_weights)[0]),
        "plain_variance": float(initial - (z.T * inv * z)[0]),
        "wsabi_l_mean": float(l_mean),
        "wsabi_l_variance": float(l_var),
        "wsabi_m_mean": float(m_mean),
        "wsabi_m_variance": float(m_var),
        "base_mean": _floats(base_mean),
        "base_variance": _floats(base_var),
        "pointwise_mean": _floats(alpha + m * m / 2 for m in base_mean),
        "pointwise_variance": _floats(m * m * c for m, c in zip(base_mean, base_var)),
        "log_marginal": float(log_marginal),
    }


def brute_force(nodes, values, queries, mean, variances, lengthscales, kernel_variance, diagonal, alpha):
    """The integral moments again in doubles, every integral a one-dimensional Gauss-Legendre rule."""
    nodes, values = np.asarray(nodes), np.asarray(values)
    t, weight = np.polynomial.legendre.leggauss(600)
    n = len(nodes)
    gram = np.full((n, n), kernel_variance)
    z = np.full(n, kernel_variance)
    prod, chain = np.full((n, n), kernel_variance**2), np.full((n, n), kernel_variance**3)
    initial, squares = kernel_variance, kernel_variance**2
    for xi, b, s, lam in zip(nodes.T, mean, variances, lengthscales):
        half_width = 12 * np.sqrt(s)  # beyond 12 standard deviations lies less than 1e-31 of the measure
        grid = b + half_width * t
        mass = half_width * weight * np.exp(-((grid - b) ** 2) / (2 * s)) / np.sqrt(2 * np.pi * s)
        unweighted = np.exp(-((xi[:, None] - grid) ** 2) / (2 * lam**2))
        to_nodes = unweighted * mass
        among = np.exp(-((grid[:, None] - grid) ** 2) / (2 * lam**2))
        gram *= np.exp(-((xi[:, None] - xi) ** 2) / (2 * lam**2))
        z *= to_nodes.sum(axis=1)
        prod *= to_nodes @ unweighted.T
        chain *= to_nodes @ among @ to_nodes.T
        initial *= mass @ among @ mass
        squares *= mass @ among**2 @ mass
    gram += diagonal * np.eye(n)
    g = np.sqrt(2 * (values - alpha))
    w = np.linalg.solve(gram, g)
    pw = prod @ w
    inv_prod = np.linalg.solve(gram, prod)
    l_mean = alpha + w @ pw / 2
    l_var = w @ chain @ w - pw @ np.linalg.solve(gram, pw)
    m_var = l_var + (squares - 2 * np.trace(np.linalg.solve(gram, chain)) + np.trace(inv_prod @ inv_prod)) / 2
    return {
        "kernel_mean": z,
        "initial_variance": initial,
        "plain_mean": z @ np.linalg.solve(gram, values),
        "plain_variance": initial - z @ np.linalg.solve(gram, z),
        "wsabi_l_mean": l_mean,
        "wsabi_l_variance": l_var,
        "wsabi_m_mean": l_mean + (kernel_variance - np.trace(inv_prod)) / 2,
        "wsabi_m_variance": m_var,
    }
