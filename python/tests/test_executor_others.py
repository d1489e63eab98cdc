"""Ray, Parsl and ipyparallel, where they are installed: the lines that the guide shows."""

import concurrent.futures
import pathlib
import sys

import pytest

import batchquad as bq
from problems import SETTINGS, prior, reference, slow_gaussian

HERE = str(pathlib.Path(__file__).parent)


def check(executor, **options):
    result = bq.integrate(slow_gaussian, prior(), executor=executor, **options, **SETTINGS)
    assert not result.failures, result.evaluations
    assert result.log_z == reference().log_z
    assert len(set(result.evaluations["worker"])) == 2


def test_ipyparallel(monkeypatch):
    ipyparallel = pytest.importorskip("ipyparallel")
    monkeypatch.setenv("PYTHONPATH", HERE)
    with ipyparallel.Cluster(n=2, log_level=40) as client:
        check(client.executor())


def test_parsl(monkeypatch, tmp_path):
    parsl = pytest.importorskip("parsl")
    from parsl.concurrent import ParslPoolExecutor

    monkeypatch.setenv("PYTHONPATH", HERE)
    monkeypatch.setenv("PATH", f"{pathlib.Path(sys.executable).parent}:{__import__('os').environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    workers = parsl.HighThroughputExecutor(max_workers_per_node=2, address="127.0.0.1", encrypted=False)
    with ParslPoolExecutor(parsl.Config(executors=[workers], run_dir=str(tmp_path / "runinfo"))) as pool:
        check(pool)


def test_ray():
    ray = pytest.importorskip("ray")

    class RayExecutor(concurrent.futures.Executor):
        def submit(self, function, /, *args):
            return ray.remote(max_retries=0)(function).remote(*args).future()

    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": HERE}}, logging_level="ERROR")
    try:
        check(RayExecutor(), workers=2)
    finally:
        ray.shutdown()
