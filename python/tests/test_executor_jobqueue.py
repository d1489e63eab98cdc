"""dask-jobqueue on a real Slurm of one node, which `scripts/slurm` starts."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import pytest

import batchquad as bq
from problems import TOLERANCE, TRUTH, prior

distributed = pytest.importorskip("distributed")
jobqueue = pytest.importorskip("dask_jobqueue")

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "slurm"
PATIENCE = 900


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    missing = [program for program in ("slurmctld", "slurmd", "sbatch") if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"no Slurm can be started: {', '.join(missing) or 'slurmd needs root'}")
    place = tmp_path / "slurm"
    try:
        started = subprocess.run([SCRIPT, "start", place], capture_output=True, text=True, timeout=PATIENCE)
        assert started.returncode == 0, started.stderr
        monkeypatch.setenv("SLURM_CONF", started.stdout.strip().split("=", 1)[1])
        yield
    finally:
        subprocess.run([SCRIPT, "stop", place], capture_output=True, timeout=PATIENCE)


@contextlib.contextmanager
def cluster(place, jobs):
    """Jobs of one worker each. The node has no memory on its books, so none is asked for."""
    options = {
        "queue": "all",
        "cores": 1,
        "processes": 1,
        "memory": "256MB",
        "job_directives_skip": ["--mem"],
        "walltime": "01:00:00",
        "interface": "lo",
        "python": sys.executable,
        "log_directory": str(place),
        "local_directory": str(place),
        "scheduler_options": {"dashboard_address": ":0"},
    }
    with jobqueue.SLURMCluster(**options) as cluster:
        cluster.scale(jobs=jobs)
        with distributed.Client(cluster) as client:
            client.wait_for_workers(jobs, timeout=PATIENCE)
            yield client


def test_a_job_that_is_killed_costs_one_evaluation(slurm, tmp_path):
    log = tmp_path / "log"

    def logged(theta):
        with open(log, "a") as file:
            file.write(f"{os.environ['SLURM_JOB_ID']} {theta[0]!r}\n")
        time.sleep(0.3)
        return -2.0 * ((theta[0] - 1.0) ** 2 + theta[1] ** 2)

    def lines():
        return [line.split() for line in log.read_text().splitlines()] if log.exists() else []

    killed = []

    def kill():
        while len(lines()) < 10:
            time.sleep(0.02)
        killed.append(lines()[-1])
        subprocess.run(["scancel", "--signal=KILL", "--full", killed[0][0]], check=True)

    killer = threading.Thread(target=kill, daemon=True)
    with cluster(tmp_path, jobs=2) as client:
        killer.start()
        result = bq.integrate(
            logged, prior(), executor=client, workers=2, schedule="async", max_evaluations=40, store=tmp_path / "run"
        )
        killer.join()
    assert abs(result.log_z - TRUTH) < TOLERANCE and not result.failures
    points = [x for _, x in lines()]
    # What the killed job had in hand was evaluated again, elsewhere, and nothing else.
    again = {x for x in points if points.count(x) > 1}
    assert len(set(points)) == 40 and len(points) <= 41 and again <= {killed[0][1]}
    assert len({job for job, _ in lines()}) == 2
