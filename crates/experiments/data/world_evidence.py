"""The evidences of src/problems/world, and log-likelihoods at reference points.

    python3 world_evidence.py [NAME ...]        # numpy 2.4, scipy 1.17; all of them by default

Linear regressions have a closed form, here by the normal equations of the posterior. The others are integrated by importance
sampling in standard normal coordinates: a Student-t at the best of many optimisations, fitted to the weighted draws of pilot
rounds, then 10^6 draws. What follows "+-" is the standard error of log Z; "efficiency" is the effective share of the draws.
"""

import sys

import numpy as np
from scipy import optimize, special

import world


SIR_REACH = [(-12, 20), (-14, 9), (-10, 10)]


def log_evidence_linear(dim, width):
    """log N(y; X b, I) + log N(b; 0, S) - log N(b; b, V) at the posterior mean b, V the posterior covariance."""
    data = world.columns("linear.csv")
    matrix, y = world.design(data, dim), data[f"y_{dim}_{width}"]
    sds = np.array([sd for _, _, sd in world.linear(dim, width).prior])
    precision = matrix.T @ matrix + np.diag(sds**-2)
    mean = np.linalg.solve(precision, matrix.T @ y)
    prior = -0.5 * ((mean / sds) ** 2).sum() - np.log(sds).sum()
    return float(
        -0.5 * ((y - matrix @ mean) ** 2).sum() - 0.5 * len(y) * world.LOG_TAU + prior - 0.5 * np.linalg.slogdet(precision)[1]
    )


def log_evidence_rosenbrock():
    """The trapezoidal rule on a rectangle beyond which prior times likelihood are negligible."""
    x, y = np.linspace(-8, 8, 3201), np.linspace(-12, 24, 7201)
    total = [special.logsumexp(rosenbrock_row(v, y)) for v in x]
    return float(special.logsumexp(total) + np.log((x[1] - x[0]) * (y[1] - y[0])))


def rosenbrock_row(x, y):
    theta = np.column_stack([np.full(len(y), x), y])
    return world.rosenbrock().log_likelihood(theta) - (x**2 + y**2) / 8 - np.log(8 * np.pi)


def log_evidence_sinusoid(nodes):
    """The amplitudes have a closed form for every period; log-uniform periods by the midpoint rule. Also the share of each mode."""
    data = world.columns("sinusoid.csv")
    t, y = data["t"], data["y"]
    (_, _, sd), _, (_, low, high) = world.SINUSOID_PRIOR
    period = low * np.exp(np.log(high / low) * (np.arange(nodes) + 0.5) / nodes)
    angle = 2 * np.pi * t[None, :] / period[:, None]
    waves = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    precision = waves @ waves.transpose(0, 2, 1) + np.eye(2) / sd**2
    right = waves @ y
    square = y @ y - (right * np.linalg.solve(precision, right[..., None])[..., 0]).sum(1)
    logs = -0.5 * (square + len(y) * world.LOG_TAU + np.linalg.slogdet(sd**2 * precision)[1])
    log_z = float(special.logsumexp(logs) - np.log(nodes))
    share = np.exp(logs - special.logsumexp(logs))
    top = np.flatnonzero((share[1:-1] > share[:-2]) & (share[1:-1] > share[2:])) + 1
    cuts = np.concatenate([[0], [a + np.argmin(share[a:b]) for a, b in zip(top[:-1], top[1:])], [nodes]]).astype(int)
    held = [(float(share[a:b].sum()), float(period[k])) for a, b, k in zip(cuts[:-1], cuts[1:], top)]
    a, b = max((share[a:b].sum(), (a, b)) for a, b in zip(cuts[:-1], cuts[1:]))[1]
    mean = (share[a:b] * np.log(period[a:b])).sum() / share[a:b].sum()
    width = np.sqrt((share[a:b] * (np.log(period[a:b]) - mean) ** 2).sum() / share[a:b].sum())
    return log_z, sorted(held, reverse=True)[:6], width / np.log(high / low)


def modes(problem, starts, random):
    """Local maxima of the joint density in latent coordinates from the best of many prior draws, best first."""
    dim = len(problem.prior)

    def cost(u):
        value = -problem.log_joint(u[None, :])[0]
        return value if np.isfinite(value) else 1e10

    draws = random.standard_normal((20_000, dim))
    values = problem.log_joint(draws)
    best = draws[np.argsort(-np.where(np.isfinite(values), values, -np.inf))[:starts]]
    best = np.vstack([problem.to_latent(np.array([problem.reference])), best])
    found = []
    for u in best:
        result = optimize.minimize(cost, u, method="Nelder-Mead", options={"maxiter": 400 * dim, "fatol": 1e-3, "xatol": 1e-3})
        result = optimize.minimize(cost, result.x, method="BFGS")
        found.append((float(-result.fun), result.x))
    return sorted(found, key=lambda f: -f[0])


class StudentT:
    def __init__(self, mean, covariance, dof):
        self.mean, self.factor, self.dof = mean, np.linalg.cholesky(covariance), dof

    def draw(self, n, random):
        normals = random.standard_normal((n, len(self.mean)))
        chi = random.chisquare(self.dof, size=n) / self.dof
        return self.mean + (normals / np.sqrt(chi)[:, None]) @ self.factor.T

    def log_density(self, x):
        d, nu = len(self.mean), self.dof
        square = (np.linalg.solve(self.factor, (x - self.mean).T) ** 2).sum(0)
        constant = special.gammaln((nu + d) / 2) - special.gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi)
        return constant - np.log(np.diag(self.factor)).sum() - 0.5 * (nu + d) * np.log1p(square / nu)


def curvature(problem, u, step=1e-3):
    """The Hessian of minus the log joint density by central differences."""
    d = len(u)
    steps = np.eye(d) * step
    points = [u + a * steps[i] + b * steps[j] for i in range(d) for j in range(d) for a in (1, -1) for b in (1, -1)]
    values = problem.log_joint(np.array(points)).reshape(d, d, 4)
    return -(values @ np.array([1, -1, -1, 1])) / (4 * step**2)


def importance(problem, start, random, draws=1_000_000, dof=6.0):
    """log Z, its standard error and the effective share of the draws."""
    proposal = StudentT(start, np.linalg.inv(curvature(problem, start)), dof)
    for _ in range(4):
        u = proposal.draw(20_000, random)
        weight = problem.log_joint(u) - proposal.log_density(u)
        weight = np.exp(weight - weight.max())
        weight /= weight.sum()
        mean = weight @ u
        proposal = StudentT(mean, (u - mean).T @ ((u - mean) * weight[:, None]), dof)
    logs = []
    for _ in range(draws // 50_000):
        u = proposal.draw(50_000, random)
        values = problem.log_joint(u)
        logs.append(np.where(np.isfinite(values), values, -np.inf) - proposal.log_density(u))
    logs = np.concatenate(logs)
    first = special.logsumexp(logs) - np.log(draws)
    second = special.logsumexp(2 * logs) - np.log(draws) - 2 * first
    return float(first), float(np.sqrt(np.expm1(second) / draws)), float(np.exp(-second))


def grid(problem, start, reach, step):
    """log Z by the trapezoidal rule along the principal axes of the curvature, in units of their widths, the widest axis last."""
    values, vectors = np.linalg.eigh(np.linalg.inv(curvature(problem, start)))
    nodes = [np.arange(low, high + step, step) for low, high in reach]
    log_cell = np.log(step) * len(start) + 0.5 * np.log(values).sum()
    logs = []
    for w in nodes[-1]:
        mesh = np.stack([m.ravel() for m in np.meshgrid(*nodes[:-1], [w])], axis=1)
        joint = problem.log_joint(start + (mesh * np.sqrt(values)) @ vectors.T)
        logs.append(special.logsumexp(joint))
    return float(special.logsumexp(logs) + log_cell), np.array(logs) + log_cell


def sampled(problem, starts):
    random = np.random.default_rng(1)
    found = modes(problem, starts, random)
    spread = ", ".join(f"{found[0][0] - value:.2f}" for value, _ in found[1:8])
    print(f"  mode at {np.array2string(problem.to_theta(found[0][1][None, :])[0], precision=4)}; the next below it by {spread}")
    log_z, error, share = importance(problem, found[0][1], random)
    sds = np.sqrt(np.diag(np.linalg.inv(curvature(problem, found[0][1]))))
    print(f"  prior over posterior widths {np.array2string(1 / sds, precision=1)}")
    print(f"  log Z {log_z:.5f} +- {error:.5f}, efficiency {share:.2f}")


def report(problem):
    value = problem.log_likelihood(np.array([problem.reference]))[0]
    print(f"{problem.name}: log-likelihood at {problem.reference} is {float(value)!r}")


def main(names):
    def wanted(problem):
        if names and problem.name not in names:
            return False
        report(problem)
        return True

    for dim in world.DIMS:
        data = world.columns("linear.csv")
        print("d =", dim, "posterior sds", world.posterior_sds(world.design(data, dim)))
        for width in world.WIDTHS:
            if wanted(world.linear(dim, width)):
                print("  log Z", repr(log_evidence_linear(dim, width)))
    if wanted(problem := world.logistic()):
        sampled(problem, 3)
    if wanted(problem := world.gaussian_2()):
        sampled(problem, 1)
    wanted(world.four_modes())
    if wanted(world.rosenbrock()):
        print("  log Z", repr(log_evidence_rosenbrock()))
    if wanted(world.sinusoid()):
        for nodes in (20_000, 40_000):
            log_z, held, width = log_evidence_sinusoid(nodes)
            print("  log Z", repr(log_z), "with", nodes, "nodes; width of the best mode over that of the prior", round(width, 5))
        print("  shares of the modes:", ", ".join(f"{share:.2g} at {period:.3f}" for share, period in held))
    if wanted(problem := world.sir()):
        sampled(problem, 5)
        start = modes(problem, 5, np.random.default_rng(1))[0][1]
        for step in (0.5, 0.25):
            log_z, slices = grid(problem, start, SIR_REACH, step)
            print(f"  step {step}: log Z {log_z:.6f}; at the ends of the widest axis {slices[[0, -1]] - log_z}")
    for dim in (6, 8):
        if wanted(problem := world.lotka_volterra(dim)):
            sampled(problem, 12)


if __name__ == "__main__":
    main(sys.argv[1:])
