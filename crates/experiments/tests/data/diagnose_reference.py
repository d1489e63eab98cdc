"""Effective sample sizes and R̂ of four short autoregressive chains, from ArviZ.

Run: python diagnose_reference.py > diagnose_reference.json
"""

import json

import arviz
import numpy


def chains(coefficient, shift, draws, seed):
    """Four chains x' = coefficient x + noise, the last of them moved by `shift`."""
    random = numpy.random.default_rng(seed)
    x = random.normal(size=(4, draws))
    for t in range(1, draws):
        x[:, t] += coefficient * x[:, t - 1]
    x[3] += shift
    # Few digits, so that the file stays small; ArviZ sees the rounded numbers too.
    return numpy.round(x, 4)


cases = []
for seed, (coefficient, shift, draws) in enumerate([(0.0, 0.0, 60), (0.7, 0.0, 61), (-0.5, 0.0, 60), (0.5, 2.0, 40)]):
    x = chains(coefficient, shift, draws, seed)
    cases.append(
        {
            "chains": x.tolist(),
            "effective_size": float(arviz.ess(x, method="mean")),
            "split_r_hat": float(arviz.rhat(x, method="split")),
        }
    )
print(json.dumps({"arviz": arviz.__version__, "numpy": numpy.__version__, "cases": cases}))
