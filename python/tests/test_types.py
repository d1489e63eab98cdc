"""A user's script under `mypy --strict`: what is right passes, what is wrong is said."""

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mypy")

RIGHT = """
import concurrent.futures
import numpy as np
import batchquad as bq

def log_likelihood(theta: np.ndarray) -> float:
    return float(-theta @ theta)

prior = {"x": bq.Normal(0, 1), "y": bq.Uniform(low=-1, high=1)}
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    result: bq.Result = bq.integrate(log_likelihood, prior, executor=pool, max_evaluations=16, kernel="ard")
log_z: float = result.log_z
low, high = result.marginal("x").interval(0.95)
width: float = high - low
with bq.Study(prior, batch=4, store="run") as study:
    for job in study.ask():
        study.tell(job, log_likelihood(job.theta))
    log_z, sd = study.estimate()
probabilities: dict[str, float] = bq.compare({"one": result, "two": (log_z, sd)}).probabilities
"""

WRONG = """
import batchquad as bq

prior = {"x": bq.Normal(0, 1)}
bq.integrate(lambda theta: 0.0, prior, max_evaluations="many")
bq.integrate(lambda theta: 0.0, prior, batch_rule="kriging")
bq.integrate(lambda theta: 0.0, prior, kernels="ard")
bq.Normal("0", 1)
bq.Study(prior).estimate().logz
"""


def test_a_users_script(tmp_path):
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    # Beside the installed packages, so that a second run is quick.
    cache = pathlib.Path(sys.prefix) / ".mypy_cache"
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert errors and all(line.startswith("wrong.py") for line in errors), done.stdout
    assert [int(line.split(":")[1]) for line in errors] == [5, 6, 7, 8, 9], done.stdout
