"""Reference values for tests/prior: quantiles, log-densities and log |dθ/du| of every prior family.

Run with `python prior_reference.py > prior_reference.json` in an environment that has mpmath (the version used is
written into the output). Everything is computed with 50 digits and inverted in the smaller tail, so that the printed
doubles are correctly rounded up to the rare double rounding.
"""

import json
import platform
import sys

import mpmath
from mpmath import inf, mp, mpf

mp.dps = 50
LATENT = [-8.0, -5.0, -2.0, -0.5, 0.0, 0.5, 2.0, 5.0, 8.0]


def phi(u):
    return mp.ncdf(u) if u > -5 else mp.erfc(-u / mp.sqrt(2)) / 2


def log_phi_density(u):
    return -u * u / 2 - mp.log(2 * mp.pi) / 2


def root(f, low, high):
    """The root of an increasing function: bisection first, then the secant rule to full precision."""
    for _ in range(40):
        mid = (low + high) / 2
        low, high = (mid, high) if f(mid) < 0 else (low, mid)
    f_low, f_high = f(low), f(high)
    for _ in range(20):
        if f_high == f_low or abs(high - low) <= abs(high) * mpf(10) ** -45:
            break
        low, f_low, high = high, f_high, high - f_high * (high - low) / (f_high - f_low)
        f_high = f(high)
    return high


def invert(lower, upper, back, low, high):
    """u ↦ back(t) with lower(t) = Φ(u), or upper(t) = Φ(−u) when that is the smaller."""

    def quantile(u):
        u = mpf(u)
        if u <= 0:
            target = mp.log(phi(u))
            return back(root(lambda t: mp.log(lower(t)) - target, mpf(low), mpf(high)))
        target = mp.log(phi(-u))
        return back(root(lambda t: target - mp.log(upper(t)), mpf(low), mpf(high)))

    return quantile


def normal(mean, sd):
    return lambda u: mean + sd * mpf(u), lambda x: log_phi_density((x - mean) / sd) - mp.log(sd)


def log_normal(mu, sigma):
    return (
        lambda u: mp.exp(mu + sigma * mpf(u)),
        lambda x: log_phi_density((mp.log(x) - mu) / sigma) - mp.log(sigma * x),
    )


def uniform(low, high):
    return lambda u: low + (high - low) * phi(mpf(u)), lambda x: -mp.log(high - low)


def log_uniform(low, high):
    span = mp.log(high / low)
    return lambda u: low * mp.exp(span * phi(mpf(u))), lambda x: -mp.log(x * span)


def beta_tail(a, b, t):
    """I_x(a, b) at x = logistic(t), from the hypergeometric series on the side where it converges fast."""
    x, y = 1 / (1 + mp.exp(-t)), 1 / (1 + mp.exp(t))
    scale = mp.exp(a * mp.log(x) + b * mp.log(y)) / mp.beta(a, b)
    if x < (a + 1) / (a + b + 2):
        return scale / a * mp.hyp2f1(1, a + b, a + 1, x, maxterms=10**6)
    return 1 - scale / b * mp.hyp2f1(1, a + b, b + 1, y, maxterms=10**6)


def beta(a, b):
    quantile = invert(
        lambda t: beta_tail(a, b, t), lambda t: beta_tail(b, a, -t), lambda t: 1 / (1 + mp.exp(-t)), -1000, 1000
    )
    return quantile, lambda x: (a - 1) * mp.log(x) + (b - 1) * mp.log1p(-x) - mp.log(mp.beta(a, b))


def gamma_unit(a):
    return invert(
        lambda t: mp.gammainc(a, 0, mp.exp(t), regularized=True),
        lambda t: mp.gammainc(a, mp.exp(t), inf, regularized=True),
        mp.exp,
        -2000,
        mp.log(a + 200 + 20 * mp.sqrt(a)),
    )


def gamma(shape, rate):
    unit = gamma_unit(shape)
    return (
        lambda u: unit(u) / rate,
        lambda x: shape * mp.log(rate) + (shape - 1) * mp.log(x) - rate * x - mp.loggamma(shape),
    )


def inverse_gamma(shape, scale):
    unit = gamma_unit(shape)
    return (
        lambda u: scale / unit(-u),
        lambda x: shape * mp.log(scale) - (shape + 1) * mp.log(x) - scale / x - mp.loggamma(shape),
    )


def exponential(rate):
    return (
        lambda u: -mp.log1p(-phi(mpf(u))) / rate if u < 0 else -mp.log(phi(-mpf(u))) / rate,
        lambda x: mp.log(rate) - rate * x,
    )


def half_normal(scale):
    def quantile(u):
        return scale * mp.sqrt(2) * mp.erfinv(phi(mpf(u)))

    return quantile, lambda x: mp.log(2) + log_phi_density(x / scale) - mp.log(scale)


def cauchy(location, scale):
    return (
        lambda u: location - scale * mp.cot(mp.pi * phi(mpf(u))),
        lambda x: -mp.log(mp.pi * scale) - mp.log1p(((x - location) / scale) ** 2),
    )


def half_cauchy(scale):
    return (
        lambda u: scale * mp.tan(mp.pi * phi(mpf(u)) / 2),
        lambda x: mp.log(2 / (mp.pi * scale)) - mp.log1p((x / scale) ** 2),
    )


def student_t(dof, location, scale):
    def quantile(u):
        if u == 0:
            return mpf(location)
        target = mp.log(2 * phi(-abs(mpf(u))))
        # t² = ν e^y has the tail I(ν/2, ½) at logistic(−y).
        y = root(lambda y: target - mp.log(beta_tail(dof / 2, mpf(1) / 2, -y)), mpf(-60), mpf(400))
        return location + scale * mp.sign(u) * mp.sqrt(dof) * mp.exp(y / 2)

    def log_density(x):
        t = (x - location) / scale
        return -mp.log(mp.beta(dof / 2, mpf(1) / 2) * mp.sqrt(dof) * scale) - (dof + 1) / 2 * mp.log1p(t * t / dof)

    return quantile, log_density


def truncated_normal(mean, sd, low=-inf, high=inf):
    a, b = (low - mean) / sd, (high - mean) / sd

    def mass(x, y):
        """Φ(y) − Φ(x) without cancellation at 50 digits, by working in the nearer tail with 400 digits in hand."""
        with mp.workdps(mp.dps + 450):
            return (mp.erfc(x / mp.sqrt(2)) - mp.erfc(y / mp.sqrt(2))) / 2

    total = mass(a, b)

    def quantile(u):
        # The unknown is the logarithm of the gap to the end on the side of the smaller tail, or to the only end.
        target = mp.log(phi(-abs(mpf(u))) * total)
        below, widest = u <= 0, mp.log(b - a) if mp.isfinite(b - a) else mpf(6)
        if mp.isfinite(a if below else b):
            near = (lambda t: mass(a, a + mp.exp(t))) if below else (lambda t: mass(b - mp.exp(t), b))
            gap = mp.exp(root(lambda t: mp.log(near(t)) - target, mpf(-80), widest))
        else:
            beyond = (lambda t: mass(a, b - mp.exp(t))) if below else (lambda t: mass(a + mp.exp(t), b))
            gap = mp.exp(root(lambda t: target - mp.log(beyond(t)), mpf(-80), widest))
        from_low = below == bool(mp.isfinite(a if below else b))
        return mean + sd * (a + gap if from_low else b - gap)

    return quantile, lambda x: log_phi_density((x - mean) / sd) - mp.log(sd * total)


CASES = [
    ("normal", normal, [{"mean": 0, "sd": 1}, {"mean": -3, "sd": 0.25}, {"mean": 1e6, "sd": 1e-3}]),
    ("log-normal", log_normal, [{"mu": 0, "sigma": 1}, {"mu": -2, "sigma": 3}]),
    ("uniform", uniform, [{"low": 0, "high": 1}, {"low": -5, "high": 10}, {"low": 1000, "high": 1000.5}]),
    ("log-uniform", log_uniform, [{"low": 1e-3, "high": 1e3}, {"low": 1, "high": 1.0009765625}]),
    ("beta", beta, [{"a": a, "b": b} for a, b in
                    [(0.5, 0.5), (1, 1), (2, 30), (30, 2), (0.125, 5), (500, 700), (1e5, 3), (0.05, 0.05)]]),
    ("gamma", gamma, [{"shape": a, "rate": r} for a, r in
                      [(0.0625, 1), (0.1, 1), (0.5, 2), (1, 1), (3, 0.1), (100, 10), (1e6, 1e3)]]),
    ("inverse-gamma", inverse_gamma, [{"shape": a, "scale": s} for a, s in [(0.1, 1), (3, 2), (100, 5)]]),
    ("exponential", exponential, [{"rate": 1}, {"rate": 1e-3}]),
    ("half-normal", half_normal, [{"scale": 1}, {"scale": 20}]),
    ("cauchy", cauchy, [{"location": 0, "scale": 1}, {"location": 5, "scale": 0.125}]),
    ("half-cauchy", half_cauchy, [{"scale": 1}, {"scale": 25}]),
    ("student-t", student_t, [{"dof": n, "location": m, "scale": s} for n, m, s in
                              [(0.5, 0, 1), (1, 0, 1), (4, 2, 0.5), (1000, 0, 1), (1e4, 0, 3)]]),
    ("truncated-normal", truncated_normal, [
        {"mean": 0, "sd": 1, "low": 8, "high": 9}, {"mean": 0, "sd": 1, "low": -40, "high": -38},
        {"mean": 0, "sd": 1, "low": 0}, {"mean": 0, "sd": 1, "low": -1, "high": 2},
        {"mean": 2, "sd": 3, "high": 1}, {"mean": 0, "sd": 1, "low": 38}, {"mean": 0, "sd": 1, "low": -0.5},
        {"mean": 0, "sd": 1, "low": 3, "high": 3.0009765625}, {"mean": 0, "sd": 1, "low": -30, "high": 2},
        {"mean": 1, "sd": 0.5, "low": 1, "high": 4},
    ]),
]


def evaluate(name, family, given):
    quantile, log_density = family(**{k: mpf(v) for k, v in given.items()})
    points = []
    for u in LATENT:
        exact = quantile(u)
        theta = float(exact)
        # The density at the double, which is what a test can ask for; a θ that rounds onto the end has none.
        try:
            density = log_density(mpf(theta))
            density = float(density) if mp.isfinite(density) else None
        except (ValueError, ZeroDivisionError):
            density = None
        # Where even 50 digits round θ onto the end (Beta(0.05, 0.05) at u = 5) there is no reference either.
        jacobian = log_phi_density(mpf(u)) - log_density(exact)
        jacobian = float(jacobian) if mp.isfinite(jacobian) else None
        points.append({"u": u, "theta": theta, "log_density": density, "log_jacobian": jacobian})
    return {"distribution": {name: given}, "points": points}


def main():
    cases = []
    for name, family, parameters in CASES:
        for given in parameters:
            cases.append(evaluate(name, family, given))
            print(name, given, file=sys.stderr)
    normal_tail = [
        {"u": u, "log_cdf": float(mp.log(phi(mpf(u))) if u < 0 else mp.log1p(-phi(-mpf(u))))}
        for u in [-1000.0, -200.0, -50.0, -38.0, -20.0, -10.0, -9.5, -8.0, -5.0, -2.0, -1.0, -0.5, -1e-3, 0.0,
                  1e-3, 0.5, 2.0, 5.0, 8.0, 20.0, 30.0]
    ]
    provenance = f"prior_reference.py, mpmath {mpmath.__version__}, Python {platform.python_version()}, {mp.dps} digits"
    json.dump({"provenance": provenance, "cases": cases, "normal": normal_tail}, sys.stdout, indent=1, allow_nan=False)
    print()


main()
