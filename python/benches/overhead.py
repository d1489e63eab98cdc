"""What the Python layer costs for each evaluation, beyond the core: python python/benches/overhead.py

The same run, point by point, is done by Python (executor=None) and entirely in Rust, in turn, in processor time of one thread, which a
busy machine distorts less than the clock. The time inside the likelihood itself is taken off. The overhead is the difference for one
evaluation; the last column includes the report and the diagnosis at the end of a run.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

os.environ["RAYON_NUM_THREADS"] = "1"

import numpy as np

import batchquad as bq
from batchquad._batchquad import reference_run
from batchquad._prior import as_prior

REPEATS = 15
CASES = [(2, 8, 48), (2, 8, 128), (4, 8, 128), (6, 16, 256)]


def log_likelihood(theta: np.ndarray) -> float:
    return -2.0 * float(np.sum((theta - 1.0) ** 2))


def main() -> None:
    print(f"{'dimension':>9} {'batch':>5} {'evaluations':>11} {'core ms':>8} {'overhead ms':>11} {'with report ms':>14}")
    worst = 0.0
    for dim, batch, evaluations in CASES:
        prior = as_prior({f"x{i}": bq.Normal(0, 1) for i in range(dim)})
        settings = {"batch": batch, "max_evaluations": evaluations}
        core, overhead, whole = [], [], []
        for _ in range(REPEATS):
            began = time.process_time()
            _, log_z = reference_run(prior, json.dumps(settings), 0)
            seconds = time.process_time() - began
            study = bq.Study(prior, seed=0, **settings)
            began = time.process_time()
            result = study.run(log_likelihood, progress=False)
            total = time.process_time() - began
            began = time.process_time()
            assert study.result().log_z == log_z == result.log_z
            report = time.process_time() - began
            inside = float(np.sum(result.evaluations["seconds"]))
            core.append(1e3 * seconds / evaluations)
            overhead.append(1e3 * (total - report - inside - seconds) / evaluations)
            whole.append(1e3 * (total - inside - seconds) / evaluations)
        middle = [statistics.median(column) for column in (core, overhead, whole)]
        worst = max(worst, middle[1])
        print(f"{dim:>9} {batch:>5} {evaluations:>11} {middle[0]:>8.3f} {middle[1]:>11.3f} {middle[2]:>14.3f}")
    sys.exit(worst > 0.3)


if __name__ == "__main__":
    main()
