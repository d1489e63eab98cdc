"""Evaluations and seconds beside nested sampling: `python python/benches/beside_dynesty.py` prints the table of the page "When to use it".

Both get the same likelihood, which is counted and takes no time worth mentioning, so that the seconds are the methods' own. dynesty runs with
its defaults (500 live points); batchquad with its own, until the standard deviation of log Z is 0.05, or 512 evaluations.
"""

import math
import pathlib
import sys
import time

import dynesty
import numpy as np
from scipy.special import ndtri

import batchquad as bq

ROOT = pathlib.Path(__file__).resolve().parents[2]


def normal(d, sd, centre=0.0):
    """N(θ; centre, sd² I) against the prior N(0, I): log Z is that of N(centre; 0, (1 + sd²) I)."""
    constant = -0.5 * d * math.log(2 * math.pi * sd**2)
    total = 1 + sd**2
    truth = -0.5 * d * (math.log(2 * math.pi * total) + centre**2 / total)
    return d, 1.0, lambda theta: constant - 0.5 * float(np.sum((theta - centre) ** 2)) / sd**2, truth


def orings():
    rows = np.genfromtxt(ROOT / "examples/orings/orings.csv", delimiter=",", names=True)
    t, sign = (rows["Temperature"] - 70) / 10, np.where(rows["Total"] > 0, 1, -1)
    return 2, 5.0, lambda theta: -float(np.logaddexp(0, -sign * (theta[0] + theta[1] * t)).sum()), -14.01941


#: The number at the end is the width of the posterior in units of the prior's.
PROBLEMS = {
    "O-rings 2-D": orings(),
    "normal 2-D, 0.5": normal(2, 0.577, 0.5),
    "normal 4-D, 0.5": normal(4, 0.577, 0.5),
    "normal 6-D, 0.5": normal(6, 0.577, 0.5),
    "normal 8-D, 0.5": normal(8, 0.577, 0.5),
    "normal 2-D, 0.1": normal(2, 0.1005, 0.5),
    "normal 4-D, 0.1": normal(4, 0.1005, 0.5),
}


class Counted:
    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, theta):
        self.calls += 1
        return self.function(theta)


def nested(d, scale, function):
    sampler = dynesty.NestedSampler(function, lambda cube: scale * ndtri(cube), d, rstate=np.random.default_rng(1))
    sampler.run_nested(print_progress=False)
    return sampler.results.logz[-1], sampler.results.logzerr[-1]


def quadrature(d, scale, function):
    prior = {f"x{k}": bq.Normal(0, scale) for k in range(d)}
    result = bq.integrate(function, prior, target_sd=0.05, max_evaluations=512, progress=False)
    return result.log_z, result.log_z_sd


def main():
    print(f"| problem | log Z | dynesty {dynesty.__version__} | calls | s | batchquad | calls | s | even at |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, (d, scale, function, truth) in PROBLEMS.items():
        row = [name, f"{truth:.3f}"]
        spent = []
        for method in (nested, quadrature):
            counted = Counted(function)
            begin = time.process_time()
            log_z, sd = method(d, scale, counted)
            seconds = time.process_time() - begin
            spent.append((counted.calls, seconds))
            row += [f"{log_z:.3f} ± {sd:.3f}", str(counted.calls), f"{seconds:.1f}"]
        (calls, theirs), (few, ours) = spent
        # Evaluations made one at a time: above this cost of each, ours is done first.
        even = max(0.0, (ours - theirs) / (calls - few))
        row.append("0" if even == 0.0 else f"{1e3 * even:.2g} ms")
        print(f"| {' | '.join(row)} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
