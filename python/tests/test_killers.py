"""Points that end the process which evaluates them, and workers whose parent was ended."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import batchquad as bq
from problems import gaussian, prior


def start(tmp_path, text, *arguments, **options):
    script = tmp_path / "driver.py"
    script.write_text(textwrap.dedent(text))
    return subprocess.Popen([sys.executable, script, tmp_path / "store", *arguments], **options)


def test_a_point_that_kills_the_driver_is_given_up_and_the_others_are_not(tmp_path):
    driver = """
        import os, signal, sys
        import batchquad as bq

        def f(theta):
            if os.path.exists("bad") and open("bad").read() == repr(theta.tolist()):
                os.kill(os.getpid(), signal.SIGKILL)
            return -float(theta @ theta)

        study = bq.Study({"x": bq.Normal(0, 1), "y": bq.Normal(0, 1)}, store=sys.argv[1], max_evaluations=16)
        if not os.path.exists("bad"):
            with open("bad", "w") as file:
                file.write(repr(study.ask(8)[2].theta.tolist()))
        result = study.run(f)
        print(result.status, result.failures)
    """
    codes = []
    while not codes or (codes[-1] == -signal.SIGKILL and len(codes) < 10):
        codes.append(start(tmp_path, driver, cwd=tmp_path).wait(120))
    assert codes[-1] == 0 and 2 <= len(codes) <= 6, codes
    with bq.Study.open(tmp_path / "store") as study:
        result = study.result()
        table = result.evaluations
        assert list(table["status"]).count("failed") == 1 and table["kind"][2] == "lost-worker"
        assert result.status == "budget"


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_workers_end_with_their_parent_even_when_they_hold_the_lock(tmp_path):
    """A regular expression that takes for ever keeps the interpreter's lock, so no thread of the worker can look around."""
    driver = """
        import os, re, sys
        import batchquad as bq

        def f(theta):
            with open("pids", "a") as file:
                file.write(f"{os.getpid()}\\n")
            re.match("(a+)+$", "a" * 60 + "b")

        bq.integrate(f, {"x": bq.Normal(0, 1)}, executor=2, store=sys.argv[1])
    """
    process = start(tmp_path, driver, cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (tmp_path / "pids").exists() or len((tmp_path / "pids").read_text().split()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    time.sleep(0.3)
    process.kill()
    process.wait()
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    while any(_runs(pid) for pid in pids):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


class Unshowable(Exception):
    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


def test_an_exception_that_cannot_be_shown_is_a_failure_like_others():
    def f(theta):
        if theta[0] > 0:
            raise Unshowable
        return gaussian(theta)

    result = bq.integrate(f, prior(), max_evaluations=16)
    messages = [m for m in result.evaluations["message"] if m]
    assert messages and all("Unshowable" in m for m in messages)


def test_reasons_hold_no_escape_codes():
    def f(theta):
        raise ValueError("\x1b[2Jgone")

    result = bq.integrate(f, prior(), max_evaluations=16)
    assert "\x1b" not in result.reason and "gone" in result.reason


@pytest.mark.parametrize("name", ["batch", "seconds", "log_likelihood"])
def test_parameters_cannot_hide_columns(name):
    with pytest.raises(bq.InvalidInput, match="name of a parameter"):
        bq.Study({name: bq.Normal(0, 1)})
