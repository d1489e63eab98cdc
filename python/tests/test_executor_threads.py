"""ThreadPoolExecutor."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import batchquad as bq
from problems import SETTINGS, TOLERANCE, TRUTH, exits, gaussian, hangs, prior, raises, reference, slow_gaussian


def test_two_threads_give_the_same_bits():
    with ThreadPoolExecutor(2) as pool:
        result = bq.integrate(slow_gaussian, prior(), executor=pool, **SETTINGS)
        assert result.log_z == reference().log_z
        assert len(set(result.evaluations["worker"])) == 2
        # The pool is the user's own and still works.
        assert pool.submit(lambda: 1).result() == 1


def test_async_keeps_both_threads_busy():
    running, most, lock = 0, 0, threading.Lock()

    def watch(theta):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1
        return gaussian(theta)

    with ThreadPoolExecutor(2) as pool:
        result = bq.integrate(watch, prior(), executor=pool, schedule="async", **SETTINGS)
    assert most == 2 and abs(result.log_z - TRUTH) < TOLERANCE


def test_exceptions_cost_one_evaluation_each():
    with ThreadPoolExecutor(2) as pool:
        for function, text in [(raises, "ValueError: x is too large"), (exits, "SystemExit: 3")]:
            result = bq.integrate(function, prior(), executor=pool, **SETTINGS)
            failed = result.evaluations["status"] == "failed"
            assert (failed == (result.evaluations["x"] > 1.0)).all()
            assert set(result.evaluations["kind"][failed]) == {"exception"}
            assert all(text in message for message in result.evaluations["message"][failed])


def test_a_thread_that_hangs_is_left_behind(monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(time, "sleep", lambda seconds: release.wait(seconds) if seconds > 60 else None)
    pool = ThreadPoolExecutor(2)
    try:
        result = bq.integrate(hangs, prior(), executor=pool, timeout=1.0, **SETTINGS)
        # Not tried again: a second attempt would only take the second thread.
        assert result.failures == {"timeout": 1} and result.evaluations["attempts"].max() == 1
        assert "still running" in result.evaluations["message"][3]
    finally:
        release.set()
        pool.shutdown()


def test_a_late_answer_counts():
    """The first evaluation ends only after its timeout, but before the run does."""
    expired, arrived = threading.Event(), threading.Event()

    def late(theta):
        if theta[0] == first:
            expired.wait()
            arrived.set()
        elif expired.is_set():
            arrived.wait()
        return gaussian(theta)

    def watch(progress):
        if progress.failures:
            expired.set()

    first = bq.Study(prior(), **SETTINGS).ask(1)[0].theta[0]
    with ThreadPoolExecutor(2) as pool:
        result = bq.integrate(late, prior(), executor=pool, timeout=1.0, progress=watch, **SETTINGS)
    assert expired.is_set() and not result.failures
    assert result.evaluations["status"][0] == "value"


def test_all_threads_hanging_is_an_error_and_not_a_wait_for_ever():
    release = threading.Event()
    pool = ThreadPoolExecutor(2)
    try:
        with pytest.raises(bq.ExecutorError, match="all 2 workers"):
            bq.integrate(lambda theta: release.wait() and 0.0, prior(), executor=pool, timeout=0.2, **SETTINGS)
    finally:
        release.set()
        pool.shutdown()
