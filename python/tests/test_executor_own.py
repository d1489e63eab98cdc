"""A number as executor: processes of our own."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import batchquad as bq
from problems import SETTINGS, TOLERANCE, TRUTH, exits, gaussian, hangs, kills_itself, prior, raises, reference


def test_two_processes_give_the_same_bits():
    def closure(theta):
        time.sleep(0.01)
        return gaussian(theta)

    result = bq.integrate(closure, prior(), executor=2, **SETTINGS)
    assert result.log_z == reference().log_z
    assert len(set(result.evaluations["worker"])) == 2
    assert not any(str(os.getpid()) == name.split(":")[1] for name in result.evaluations["worker"])
    assert multiprocessing.active_children() == []


def test_async():
    result = bq.integrate(gaussian, prior(), executor=2, schedule="async", **SETTINGS)
    assert abs(result.log_z - TRUTH) < TOLERANCE


def test_a_worker_that_dies_costs_its_own_evaluation():
    result = bq.integrate(kills_itself, prior(), executor=2, **SETTINGS)
    assert result.failures == {"lost-worker": 1}
    failed = np.flatnonzero(result.evaluations["status"] == "failed")
    assert failed.tolist() == [3] and "SIGKILL" in result.evaluations["message"][3]
    # Tried three times, the others once.
    assert result.evaluations["attempts"].tolist() == [1, 1, 1, 3] + [1] * 44


def test_a_worker_killed_from_outside_is_replaced_and_nothing_is_lost(tmp_path):
    marker = tmp_path / "killed"

    def once(theta):
        if not marker.exists() and theta[0] == second:
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return gaussian(theta)

    second = bq.Study(prior(), **SETTINGS).ask(2)[1].theta[0]
    result = bq.integrate(once, prior(), executor=2, **SETTINGS)
    assert not result.failures and result.log_z == reference().log_z
    assert result.evaluations["attempts"].tolist() == [1, 2] + [1] * 46


def test_retries_are_counted():
    result = bq.integrate(kills_itself, prior(), executor=2, retries=0, **SETTINGS)
    assert result.failures == {"lost-worker": 1} and result.evaluations["attempts"].max() == 1


def test_a_hanging_evaluation_is_ended():
    result = bq.integrate(hangs, prior(), executor=2, timeout=1.5, retries=1, **SETTINGS)
    assert result.failures == {"timeout": 1}
    assert result.evaluations["attempts"][3] == 2
    assert 1.5 <= result.evaluations["seconds"][3] < 30
    assert multiprocessing.active_children() == []


def test_exceptions_and_exits_cost_one_evaluation_each():
    for function, text in [(raises, "ValueError: x is too large"), (exits, "SystemExit: 3")]:
        result = bq.integrate(function, prior(), executor=2, **SETTINGS)
        failed = result.evaluations["status"] == "failed"
        assert (failed == (result.evaluations["x"] > 1.0)).all()
        assert set(result.evaluations["kind"][failed]) == {"exception"}
        assert all(text in message for message in result.evaluations["message"][failed])


def test_blobs_travel_and_those_that_cannot_are_failures():
    assert bq.integrate(lambda t: (gaussian(t), {"t": t}), prior(), executor=2, **SETTINGS).blobs[3]["t"].shape == (2,)
    result = bq.integrate(lambda t: (gaussian(t), lambda: 0), prior(), executor=2, **SETTINGS)
    assert result.status == "failed" and "the blob cannot be sent" in result.reason


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import os, pathlib, time
            import batchquad as bq
            def slow(theta):
                (pathlib.Path({str(tmp_path)!r}) / f"worker-{{os.getpid()}}").touch()
                time.sleep(600)
            bq.integrate(slow, {{"x": bq.Normal(0, 1)}}, executor=2, store={str(tmp_path / "store")!r})
            """
        )
    )
    run = subprocess.Popen([sys.executable, script])
    try:
        wait_for(lambda: len(list(tmp_path.glob("worker-*"))) == 2)
    finally:
        run.kill()
        run.wait()
    workers = [int(path.name.partition("-")[2]) for path in tmp_path.glob("worker-*")]
    # At once: the workers that were forked do not keep the lock.
    with bq.Study.open(tmp_path / "store") as study:
        # The initial design of one parameter.
        assert len(study.pending()) == 6
    wait_for(lambda: not any(alive(pid) for pid in workers))


def wait_for(condition):
    """Waits for something that is bound to happen; the limit is only for a test that has failed."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_a_forked_child_can_integrate_too():
    def nested(theta):
        return bq.integrate(lambda t: -0.5 * (t[0] - theta[0]) ** 2, {"x": bq.Normal(0, 1)}, max_evaluations=12).log_z

    reference()
    result = bq.integrate(nested, {"mu": bq.Normal(0, 1)}, executor=2, timeout=60, max_evaluations=12)
    assert not result.failures
    # ∫∫ exp(−(t−μ)²/2) N(t) N(μ): t − μ has variance 2, so −½ log 3.
    assert abs(result.log_z + 0.5 * np.log(3)) < 0.02
