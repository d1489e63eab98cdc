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
    # Who asks next need not wait either: the choice itself was given up, which takes many seconds.
    assert heeded < 1 and whole < 2, (heeded, whole)


def busy():
    """A study that takes seconds to choose its next batch."""
    points = np.random.default_rng(0).normal(size=(600, 6))
    study = bq.Study({f"x{i}": bq.Normal(0, 1) for i in range(6)}, max_evaluations=5000)
    study.import_evaluations(points, -np.sum(points**2, axis=1))
    return study


@pytest.mark.parametrize("after", [0.2, 0.7, 1.5])
def test_a_study_answers_after_an_interrupt(after):
    """Whoever waits for the study must not be taken on by the thread that has it."""
    study = busy()
    began = time.monotonic()
    interrupt_when(lambda: time.monotonic() - began > after)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(100):
            study.ask(8)
    asked = time.monotonic()
    names = study.names
    assert len(names) == 6 and time.monotonic() - asked < 5
    study.close()


def test_waiting_for_a_busy_study_can_be_interrupted():
    study = busy()

    def choose():
        with pytest.raises(bq.InvalidInput, match="closed"):
            study.ask(24)

    chooses = threading.Thread(target=choose, daemon=True)
    chooses.start()
    time.sleep(0.5)
    began = time.monotonic()
    sent = interrupt_when(lambda: time.monotonic() - began > 0.5)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            study.pending()
            study.estimate()
    assert time.monotonic() - sent[0] < 1
    study.close()
    chooses.join(120)
    assert not chooses.is_alive()


def test_many_threads_ask_one_study():
    study, found, errors = busy(), [], []

    def ask():
        try:
            found.extend(job.id for job in study.ask(2))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert not any(thread.is_alive() for thread in threads) and not errors
    assert sorted(found) == list(range(12))


def test_one_study_is_run_once_at_a_time():
    study = bq.Study(prior(), max_evaluations=16)
    inside, leave, results = threading.Event(), threading.Event(), []

    def waits(theta):
        inside.set()
        leave.wait(60)
        return gaussian(theta)

    first = threading.Thread(target=lambda: results.append(study.run(waits)), daemon=True)
    first.start()
    assert inside.wait(60)
    with pytest.raises(bq.InvalidInput, match="run in another thread"):
        study.run(gaussian)
    leave.set()
    first.join(120)
    assert results and study.run(gaussian).log_z == results[0].log_z
