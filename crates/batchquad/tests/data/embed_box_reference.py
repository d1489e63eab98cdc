"""Reference values for tests/embed_box.rs: integrals of kernels against the uniform measure on a box.

Every value is the defining integral, computed by mpmath's Gauss-Legendre quadrature at 50 digits on panels that follow
the kernel's own scale; no closed form is used. Inputs are the exact binary64 numbers written to the file. Values below
1e-290 are left out: near the smallest normal number a relative tolerance means nothing.

    python3 embed_box_reference.py > embed_box_reference.json        (needs mpmath; some seconds)
"""

import json
import platform
from functools import reduce

import mpmath
from mpmath import mp, mpf

mp.dps = 50
SMALLEST = mpf(10) ** -290
SQRT3, SQRT5 = mp.sqrt(3), mp.sqrt(5)

KAPPA = {
    "se": lambda r: mp.exp(-r * r / 2),
    "matern12": lambda r: mp.exp(-r),
    "matern32": lambda r: (1 + SQRT3 * r) * mp.exp(-SQRT3 * r),
    "matern52": lambda r: (1 + SQRT5 * r + 5 * r * r / 3) * mp.exp(-SQRT5 * r),
}


def integrate(f, low, high, centre, scale):
    """The integral of f over [low, high], on panels that double in width away from `centre`."""
    cuts = {low, high, min(max(centre, low), high)}
    for k in range(-6, 12):
        for side in (-1, 1):
            cut = centre + side * scale * mpf(2) ** k
            if low < cut < high:
                cuts.add(cut)
    value, error = mp.quad(f, sorted(cuts), method="gauss-legendre", error=True)
    assert error <= abs(value) * mpf(10) ** -25, (value, error)
    return value


def mean(kernel, low, high, lengthscale, node):
    low, high, lengthscale, node = map(mpf, (low, high, lengthscale, node))
    kappa, nearest = KAPPA[kernel], min(max(node, low), high)
    # mpmath stops at an absolute error, so a tail is integrated relative to its largest value.
    peak = kappa(abs(nearest - node) / lengthscale)
    if peak < SMALLEST:
        return mpf(0)
    f = lambda t: kappa(abs(t - node) / lengthscale) / peak
    if low < nearest < high:
        pieces = [(low, nearest), (nearest, high)]
    else:
        pieces = [(low, high)]
    return peak * sum(integrate(f, a, b, nearest, lengthscale) for a, b in pieces) / (high - low)


def variance(kernel, low, high, lengthscale):
    low, high, lengthscale = map(mpf, (low, high, lengthscale))
    width, kappa = high - low, KAPPA[kernel]
    # The lag t = |x - x'| of two uniform points has density 2 (width - t) / width^2.
    return integrate(lambda t: 2 * (width - t) / width**2 * kappa(t / lengthscale), mpf(0), width, mpf(0), lengthscale)


def nodes(low, high, lengthscale):
    width = high - low
    inside = [low, high, low + 0.37 * width, low + 0.5 * width, low + 1e-9 * width, high - 1e-6 * width]
    outside = [high + 1e-9 * width, low - 0.1 * width, high + 2.5 * width, high + 1000.0 * width]
    tails = [high + 0.5 * lengthscale, low - 3.0 * lengthscale, high + 12.0 * lengthscale, low - 35.0 * lengthscale]
    return inside + outside + tails


def main():
    means, variances = [], []

    def add(cases, value, **inputs):
        if value >= SMALLEST:
            cases.append({**inputs, "value": float(value)})

    for kernel in KAPPA:
        for low, high in [(-0.5, 1.25), (1000.0, 1000.1)]:
            for ratio in [1e-6, 1e-3, 1e-2, 0.1, 0.5, 1.0, 3.0, 30.0, 1e3, 1e6]:
                lengthscale = ratio * (high - low)
                inputs = {"kernel": kernel, "low": [low], "high": [high], "lengthscales": [lengthscale]}
                add(variances, variance(kernel, low, high, lengthscale), **inputs)
                for node in nodes(low, high, lengthscale):
                    add(means, mean(kernel, low, high, lengthscale, node), **inputs, node=[node])
        # Lengthscales of every size at once, in a box of three unequal sides.
        box = {"low": [0.0, -3.0, 5.0], "high": [1.0, 7.0, 5.25], "lengthscales": [1e-3, 8.0, 250.0]}
        axes = list(zip(*box.values()))
        product = lambda values: reduce(lambda a, b: a * b, values)
        add(variances, product([variance(kernel, *axis) for axis in axes]), kernel=kernel, **box)
        for node in [[0.25, 0.5, 5.125], [0.0, 7.0, 5.25], [1.01, 9.0, -40.0]]:
            add(means, product([mean(kernel, *axis, x) for axis, x in zip(axes, node)]), kernel=kernel, **box, node=node)

    provenance = {
        "script": "embed_box_reference.py",
        "mpmath": mpmath.__version__,
        "python": platform.python_version(),
        "digits": mp.dps,
        "method": "Gauss-Legendre quadrature of the defining integrals, error estimate below 1e-25 relative",
    }
    lines = lambda cases: "[\n" + ",\n".join("    " + json.dumps(case) for case in cases) + "\n  ]"
    print('{\n  "provenance": %s,\n  "mean": %s,\n  "variance": %s\n}' % (json.dumps(provenance), lines(means), lines(variances)))


if __name__ == "__main__":
    main()
