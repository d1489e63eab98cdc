"""Ctrl-C: at once, whatever is going on, and nothing that was evaluated is lost."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import batchquad as bq
from problems import SETTINGS, gaussian, prior, reference


def interrupt_when(condition):
    """Sends SIGINT to this process once; says when it did."""
    sent = []

    def wait():
        while not condition():
            time.sleep(0.002)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait, daemon=True).start()
    return sent


@pytest.mark.parametrize("executor", [None, 2])
def test_a_run_in_memory_goes_on_where_it_was(executor):
    calls = []

    def slow(theta):
        time.sleep(0.02)
        return gaussian(theta)

    interrupt_when(lambda: len(calls) > 10)
    with pytest.raises(KeyboardInterrupt) as caught:
        bq.integrate(slow, prior(), executor=executor, progress=calls.append, **SETTINGS)
    study = caught.value.study
    assert isinstance(caught.value, bq.Interrupted) and "resumable" in str(caught.value)
    done = study.result().evaluations["status"].tolist().count("value")
    assert 8 <= done < 48 and not study.result().failures
    assert study.run(gaussian).log_z == reference().log_z


def test_an_evaluation_in_this_thread_is_interrupted():
    inside = threading.Event()

    def hangs(theta):
        inside.set()
        time.sleep(3600)

    interrupt_when(inside.is_set)
    with pytest.raises(bq.Interrupted) as caught:
        bq.integrate(hangs, prior(), **SETTINGS)
    assert len(caught.value.study.pending()) == 8


def laborious(starts):
    """A study whose next batch takes long to choose."""
    points = np.random.default_rng(0).normal(size=(300, 6))
    study = bq.Study({f"x{i}": bq.Normal(0, 1) for i in range(6)}, max_evaluations=5000, starts_per_dim=starts, kernel="ard")
    study.import_evaluations(points, -np.sum(points**2, axis=1))
    return study


def test_other_threads_go_on_while_rust_computes():
    """Were the interpreter's lock held, this thread would not count at all between the beginning and the end of the choice."""
    study, done, counts = laborious(10), threading.Event(), []

    def count():
        while not done.is_set():
            counts.append(time.monotonic())
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    began = time.monotonic()
    study.ask(8)
    ended = time.monotonic()
    done.set()
    thread.join()
    assert sum(began < moment < ended for moment in counts) > 10


def test_two_studies_in_two_threads():
    results = []
    threads = [threading.Thread(target=lambda: results.append(reference().log_z)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [reference().log_z] * 4


def test_choosing_is_interrupted_at_once():
    """A batch that takes seconds to choose is given up without waiting for it, and nothing was recorded."""
    study = laborious(100)
    choosing = threading.Event()
    sent = interrupt_when(choosing.is_set)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        choosing.set()
        study.ask(32)
    heeded = time.monotonic() - sent[0]
    assert study.pending() == []
    whole = time.monotonic() - began
    # The waiting for the lock shows how long the choice took: the interrupt came long before its end.
    assert heeded < 0.5 * whole, (heeded, whole)
