"""Executors that misbehave."""

import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

import batchquad as bq
from problems import SETTINGS, gaussian, prior, reference


class Faulty(Executor):
    """Runs everything at once in this thread, except for what `fault` does with it."""

    def __init__(self, fault):
        self.fault, self.calls = fault, 0

    def submit(self, function, /, *args, **kwargs):
        self.calls += 1
        future = Future()
        if not self.fault(self.calls, future):
            future.set_result(function(*args, **kwargs))
        return future


def test_refusing_now_and_then_is_harmless():
    def fault(call, future):
        if call % 5 == 2:
            raise RuntimeError("queue is full")

    result = bq.integrate(gaussian, prior(), executor=Faulty(fault), **SETTINGS)
    assert not result.failures and result.log_z == reference().log_z


def test_refusing_for_ever_ends_the_run_and_loses_nothing(tmp_path):
    def fault(call, future):
        if call > 12:
            raise RuntimeError("cannot schedule new futures after shutdown")

    with pytest.raises(bq.ExecutorError, match="cannot schedule new futures after shutdown"):
        bq.integrate(gaussian, prior(), executor=Faulty(fault), store=tmp_path / "store", **SETTINGS)
    with bq.Study.open(tmp_path / "store") as study:
        assert study.result().evaluations["status"].tolist().count("value") == 12
    # Not a point is spent: with another executor it goes on to the same end.
    result = bq.integrate(gaussian, prior(), store=tmp_path / "store", **SETTINGS)
    assert result.log_z == reference().log_z


def test_a_pool_that_was_shut_down():
    pool = ThreadPoolExecutor(2)
    pool.shutdown()
    with pytest.raises(bq.ExecutorError, match="takes no jobs"):
        bq.integrate(gaussian, prior(), executor=pool, **SETTINGS)


def test_cancelling_is_a_lost_worker_and_tried_again():
    def fault(call, future):
        if call in (3, 4, 20):
            assert future.cancel()
            future.set_running_or_notify_cancel()
            return True

    result = bq.integrate(gaussian, prior(), executor=Faulty(fault), **SETTINGS)
    assert not result.failures and result.log_z == reference().log_z
    assert result.evaluations["attempts"].sum() == 51


def test_cancelling_everything_is_a_failure():
    def fault(call, future):
        future.cancel()
        return future.set_running_or_notify_cancel() or True

    result = bq.integrate(gaussian, prior(), executor=Faulty(fault), **SETTINGS)
    assert result.status == "failed" and set(result.failures) == {"lost-worker"}
    assert "the executor cancelled it" in result.reason


def test_never_completing_is_a_timeout():
    def fault(call, future):
        # The fifth is never even begun, the tenth begins and never ends.
        if call == 10:
            future.set_running_or_notify_cancel()
        return call in (5, 10)

    result = bq.integrate(gaussian, prior(), executor=Faulty(fault), timeout=0.2, workers=4, **SETTINGS)
    # What could be cancelled was tried again.
    assert result.failures == {"timeout": 1}


def test_never_completing_anything_is_an_error():
    def fault(call, future):
        return future.set_running_or_notify_cancel()

    with pytest.raises(bq.ExecutorError, match="beyond timeout"):
        bq.integrate(gaussian, prior(), executor=Faulty(fault), timeout=0.05, workers=2, **SETTINGS)


def test_a_broken_executor_that_cannot_be_made_again(tmp_path):
    def fault(call, future):
        if call > 12:
            future.set_exception(BrokenProcessPool("a worker died"))
            return True

    with pytest.raises(bq.ExecutorError, match="a worker died"):
        bq.integrate(gaussian, prior(), executor=Faulty(fault), store=tmp_path / "store", **SETTINGS)
    assert bq.integrate(gaussian, prior(), store=tmp_path / "store", **SETTINGS).log_z == reference().log_z


def test_exceptions_that_are_the_machinerys_own_are_tried_again():
    def fault(call, future):
        if call == 7:
            future.set_exception(ConnectionResetError("the node went away"))
            return True

    result = bq.integrate(gaussian, prior(), executor=Faulty(fault), **SETTINGS)
    assert not result.failures and result.log_z == reference().log_z


def test_answers_from_other_threads_in_any_order():
    class Reversed(Executor):
        """Answers a batch in reverse, from a thread."""

        def __init__(self):
            self.waiting = []

        def submit(self, function, /, *args):
            future = Future()
            self.waiting.append((future, function, args))
            threading.Timer(0.01, self.answer).start()
            return future

        def answer(self):
            future, function, args = self.waiting.pop()
            future.set_result(function(*args))

    assert bq.integrate(gaussian, prior(), executor=Reversed(), **SETTINGS).log_z == reference().log_z
