"""Dask: a real cluster of two processes."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import batchquad as bq
from problems import SETTINGS, TOLERANCE, TRUTH, kills_itself, prior, raises, reference, slow_gaussian

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def allowed_failures(client):
    return client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.allowed_failures)


@pytest.mark.parametrize("as_executor", [True, False], ids=["Client.get_executor()", "Client"])
def test_two_workers_give_the_same_bits(client, as_executor):
    before = allowed_failures(client)
    executor = client.get_executor() if as_executor else client
    result = bq.integrate(slow_gaussian, prior(), executor=executor, **SETTINGS)
    assert result.log_z == reference().log_z
    assert len(set(result.evaluations["worker"])) == 2
    assert allowed_failures(client) == before


def test_async(client):
    result = bq.integrate(slow_gaussian, prior(), executor=client, schedule="async", **SETTINGS)
    assert abs(result.log_z - TRUTH) < TOLERANCE


def test_exceptions_cost_one_evaluation_each(client):
    result = bq.integrate(raises, prior(), executor=client, **SETTINGS)
    failed = result.evaluations["status"] == "failed"
    assert (failed == (result.evaluations["x"] > 1.0)).all() and set(result.failures) == {"exception"}


def test_a_future_is_dropped_as_soon_as_its_result_is_known(client):
    held = []

    def look(progress):
        held.append(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)))

    bq.integrate(slow_gaussian, prior(), executor=client, progress=look, **SETTINGS)
    # Two are running; those that have just finished are let go within a moment.
    assert len(held) > 10 and max(held[1:]) <= 6


def test_a_killed_worker_costs_one_evaluation(client, tmp_path):
    """A worker is killed in the middle of an evaluation; that one is evaluated again, and no other."""
    log = tmp_path / "log"

    def logged(theta):
        with open(log, "a") as file:
            file.write(f"{os.getpid()} {theta[0]!r}\n")
        time.sleep(0.05)
        return -2.0 * ((theta[0] - 1.0) ** 2 + theta[1] ** 2)

    def kill():
        while not log.exists() or len(log.read_text().splitlines()) < 10:
            time.sleep(0.005)
        os.kill(int(log.read_text().splitlines()[-1].split()[0]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    result = bq.integrate(logged, prior(), executor=client, **SETTINGS)
    killer.join()
    assert not result.failures and result.log_z == reference().log_z
    lines = [line.split()[1] for line in log.read_text().splitlines()]
    assert len(set(lines)) == 48 and len(lines) <= 49
    assert result.evaluations["attempts"].sum() <= 49


def test_a_poisonous_point_costs_only_itself(client):
    result = bq.integrate(kills_itself, prior(), executor=client, **SETTINGS)
    assert result.failures == {"lost-worker": 1}
    assert np.flatnonzero(result.evaluations["status"] == "failed").tolist() == [3]
    assert "KilledWorker" in result.evaluations["message"][3]
    assert result.evaluations["attempts"].tolist() == [1, 1, 1, 3] + [1] * 44
