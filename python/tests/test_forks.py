"""Processes forked while a study is busy: they hold nothing of it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import batchquad as bq

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_a_fork_made_while_the_study_is_busy_does_not_keep_its_store(tmp_path):
    """A driver forks workers while another thread chooses, and is killed; its workers live on."""
    script = tmp_path / "driver.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, sys, threading, time
            import numpy as np
            import batchquad as bq

            study = bq.Study({f"x{i}": bq.Normal(0, 1) for i in range(6)}, store=sys.argv[1], max_evaluations=5000)
            points = np.random.default_rng(0).normal(size=(600, 6))
            study.import_evaluations(points, -np.sum(points**2, axis=1))
            threading.Thread(target=lambda: study.ask(64), daemon=True).start()
            time.sleep(0.5)
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            print(child, flush=True)
            time.sleep(60)
            """
        )
    )
    store = tmp_path / "store"
    driver = subprocess.Popen([sys.executable, script, store], stdout=subprocess.PIPE, text=True)
    child = int(driver.stdout.readline())
    try:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        os.kill(child, 0)  # it lives
        with bq.Study.open(store) as study:
            assert study.result().status == "unfinished"
    finally:
        os.kill(child, signal.SIGKILL)


def _look(study, answers):
    try:
        answers.put(study.estimate().log_z)
    except Exception as error:
        answers.put(f"{type(error).__name__}: {error}")


def test_the_parent_goes_on_and_the_child_is_told(tmp_path):
    fork = multiprocessing.get_context("fork")
    study = bq.Study({f"x{i}": bq.Normal(0, 1) for i in range(6)}, store=tmp_path / "store", max_evaluations=5000)
    points = np.random.default_rng(0).normal(size=(600, 6))
    study.import_evaluations(points, -np.sum(points**2, axis=1))
    chosen = []
    chooses = threading.Thread(target=lambda: chosen.extend(study.ask(4)), daemon=True)
    chooses.start()
    time.sleep(0.3)
    answers = fork.Queue()
    child = fork.Process(target=_look, args=(study, answers))
    child.start()
    said = answers.get(timeout=60)
    child.join(60)
    # Busy when it was forked: nobody there will ever give it back.
    assert isinstance(said, str) and "forked" in said
    chooses.join(120)
    assert len(chosen) == 4
    study.tell(chosen[0], -1.0)
    study.close()
    with bq.Study.open(tmp_path / "store") as again:
        assert len(again.pending()) == 3
