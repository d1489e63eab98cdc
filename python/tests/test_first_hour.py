"""What a new user does in the first hour."""

import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import batchquad
from batchquad import InvalidInput, LogUniform, NoEvidence, Normal, Result, Study, Uniform, UnitCube, compare, integrate
from batchquad._jobs import cores, with_jobs

PRIOR = {"x": Normal(0, 1), "y": Normal(0, 1)}
TRUTH = -0.4 - np.log(2 * np.pi * 1.25)


def bump(theta):
    return -0.5 * ((theta[0] - 1) ** 2 + theta[1] ** 2) / 0.25 - np.log(2 * np.pi * 0.25)


@pytest.fixture(scope="module")
def result():
    return integrate(bump, PRIOR, max_evaluations=40)


def needle():
    return integrate(lambda t: -0.5 * float(np.sum((t - 2.5) ** 2)) / 1e-6, PRIOR, max_evaluations=12)


# Comparisons


def test_a_comparison_shows_whom_not_to_trust(result):
    bad = needle()
    assert bad.diagnosis.verdict == "do-not-trust"
    table = compare({"bump": result, "needle": bad, "numbers": (-9.0, 0.1)})
    assert table["verdict"].tolist() == ["fine", "do-not-trust", None]
    said = repr(table)
    row = next(line for line in said.splitlines() if line.startswith("needle "))
    assert row.split()[-2:] == ["unknown", "do-not-trust"] and "0.0000 ± 0.0000" not in said
    assert "needle: do not trust log Z" in said
    assert said.endswith("the log Z of needle is not to be trusted; of the others, bump is the most probable.")
    assert "not to be trusted" in table._repr_html_()


def test_a_tie_is_called_a_tie():
    table = compare({"a": (-10.0, 0.3), "b": (-10.4, 0.3), "c": (-99.0, 0.1)})
    assert table.conclusion == "a and b cannot be told apart"
    assert repr(table).splitlines()[3].split()[-2:] == ["<", "0.0001"]


# Numbers and reasons


@pytest.mark.parametrize("surrogate", ["wsabi-l", "auto"])
def test_a_log_uniform_parameter_has_a_mean(surrogate):
    found = integrate(lambda t: 0.3 * t[0], {"rate": LogUniform(1e-3, 10)}, max_evaluations=48, surrogate=surrogate)
    grid = np.exp(np.linspace(np.log(1e-3), np.log(10), 200_001))
    weight = np.exp(0.3 * grid)
    mean = np.sum(grid * weight) / np.sum(weight)
    # The belief about a smooth function of one parameter is far better than a part in fifty.
    assert found.mean[0] == pytest.approx(mean, rel=0.02)
    assert np.isfinite(found.sd).all() and "nan" not in repr(found)


def test_no_evidence_has_a_reason():
    nothing = integrate(lambda t: -np.inf, PRIOR, max_evaluations=12)
    with pytest.raises(NoEvidence, match=r"no evaluation has a finite log-likelihood: 12 are -inf \(likelihood zero\)"):
        nothing.log_z
    with pytest.raises(NoEvidence, match="no log-likelihood is known"):
        Study(PRIOR).estimate()


# To be kept


def same_posterior(a, b):
    assert np.array_equal(a.samples(50), b.samples(50)) and np.array_equal(a.mean, b.mean)
    assert (a.log_z, a.log_z_sd, a.status, a.names) == (b.log_z, b.log_z_sd, b.status, b.names)
    assert repr(a) == repr(b)


def test_a_result_is_saved_and_loaded(result, tmp_path):
    result.save(tmp_path / "run.json")
    loaded = Result.load(tmp_path / "run.json")
    same_posterior(loaded, result)
    assert np.array_equal(loaded.evaluations["log_likelihood"], result.evaluations["log_likelihood"])
    assert loaded.marginal("x").interval(0.9) == result.marginal("x").interval(0.9)
    with pytest.raises(InvalidInput, match="is no result"):
        (tmp_path / "other.json").write_text("{}")
        Result.load(tmp_path / "other.json")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_pickled_result_has_its_posterior(result, tmp_path):
    same_posterior(pickle.loads(pickle.dumps(result)), result)
    kept = integrate(bump, PRIOR, max_evaluations=24, store=tmp_path / "store")
    same_posterior(pickle.loads(pickle.dumps(kept)), kept)


def test_a_prior_that_is_a_function_is_given_again(tmp_path):
    cube = UnitCube(lambda v: [4 * v[0] - 2], ["u"])
    result = integrate(lambda t: -(t[0] ** 2), cube, max_evaluations=16)
    result.save(tmp_path / "run.json")
    with pytest.raises(InvalidInput, match=r"Result.load\(path, prior=…\)"):
        Result.load(tmp_path / "run.json").samples(3)
    same_posterior(Result.load(tmp_path / "run.json", prior=cube), result)


def test_blobs_are_saved_as_far_as_json_goes(tmp_path):
    result = integrate(lambda t: (bump(t), {"chi2": np.float64(t[0])}), PRIOR, max_evaluations=10)
    result.blobs[3] = object()
    with pytest.warns(UserWarning, match="evaluation 3"):
        result.save(tmp_path / "run.json")
    blobs = Result.load(tmp_path / "run.json").blobs
    assert blobs[2] == {"chi2": result.blobs[2]["chi2"]} and 3 not in blobs


def test_a_run_without_a_store_goes_on(result):
    # Where a batch ends by itself, so that the batches of both runs are the same.
    first = integrate(bump, PRIOR, max_evaluations=18)
    calls = []

    def counted(theta):
        calls.append(theta)
        return bump(theta)

    more = integrate(counted, PRIOR, max_evaluations=40, resume=first)
    assert len(calls) == 22 and more.evaluations.rows == 40
    # As if it had never ended.
    assert (more.log_z, more.log_z_sd) == (result.log_z, result.log_z_sd)
    again = first.study(max_evaluations=40).run(bump)
    assert again.log_z == result.log_z and np.array_equal(again.samples(50), result.samples(50))
    assert first.evaluations.rows == 18
    with pytest.raises(batchquad.StoreDiffers):
        integrate(bump, {"x": Normal(0, 2), "y": Normal(0, 1)}, resume=first)
    with pytest.raises(InvalidInput, match="resume and store"):
        integrate(bump, PRIOR, resume=first, store="anywhere")


def test_a_report_is_written(result, tmp_path):
    page = result.report(tmp_path / "my model.html", known_log_z=TRUTH)
    assert (tmp_path / "my model.html").read_text(encoding="utf-8") == page
    assert page.startswith("<!DOCTYPE html>") and "my model" in page and "known answer" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and "Nothing speaks against" in page
    loaded = pickle.loads(pickle.dumps(result))
    assert "<title>bump 1.5" in loaded.report(name="bump 1.5")
    with pytest.raises(InvalidInput, match="known_log_z"):
        result.report(known_log_z=float("nan"))


def test_what_was_told_by_mistake_is_replaced():
    study = Study(PRIOR, max_evaluations=8)
    jobs = study.ask(8)
    for job in jobs:
        study.tell(job, 400.0 if job.id == 3 else bump(job.theta))
    with pytest.warns(UserWarning, match="replace=True"):
        study.tell(3, bump(jobs[3].theta))
    wrong = study.estimate().log_z
    study.tell(3, bump(jobs[3].theta), replace=True)
    found = study.result()
    assert found.replaced == [3] and found.conflicts == [] and wrong - found.log_z > 100
    assert found.evaluations["log_likelihood"][3] == bump(jobs[3].theta)
    study.fail(3, "the wrong file", replace=True)
    assert study.result().failures == {"exception": 1}


# Plots


def test_labels_truths_and_another_run_in_the_corner(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    labels = {"x": r"$\alpha$ [km/s]", "y": "offset of the clock"}
    first = integrate(bump, PRIOR, max_evaluations=32, labels=labels, store=tmp_path / "store")
    assert first.labels == labels and Study.open(tmp_path / "store").result().labels == labels
    assert "α [km/s]" in first.report()
    other = integrate(lambda t: bump([t[0] - 0.3, 0.0]), {"x": Normal(0, 1)}, max_evaluations=24)
    figure = first.plot_corner(truths={"x": 3.0}, others={"one parameter": other}, name="two parameters")
    axes = figure.axes
    assert [ax.get_xlabel() for ax in axes[-2:]] == list(labels.values())
    # The truth is far outside the posterior: the frame has it.
    assert axes[0].get_xlim()[1] > 3.0 and [text.get_text() for text in figure.legends[0].get_texts()] == [
        "two parameters",
        "one parameter",
    ]
    assert first.plot_corner(labels={"y": "y'"}).axes[-1].get_xlabel() == "y'"
    for wrong in [{"z": 1.0}, [1.0]]:
        with pytest.raises(InvalidInput, match="truth"):
            first.plot_corner(truths=wrong)
    with pytest.raises(InvalidInput, match="label for 'z'"):
        integrate(bump, PRIOR, labels={"z": "Z"})


def test_evaluations_far_below_the_best_are_marked_and_logarithmic_axes_are(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    found = integrate(
        lambda t: -50 * np.log(t[0]) ** 2 - t[1] ** 2, {"k": LogUniform(1e-3, 1e3), "c": Uniform(-1, 1)}, max_evaluations=24
    )
    figure = found.plot_evaluations()
    assert figure.axes[0].get_xscale() == "log" and figure.axes[-2].get_xscale() == "linear"
    assert "below the best" in figure.get_suptitle()
    near_zero = integrate(lambda t: -t[0], {"s": batchquad.HalfNormal(1)}, max_evaluations=24)
    assert near_zero.plot_evaluations().axes[0].get_xscale() == "linear"


def test_a_figure_is_shown_once_in_a_notebook():
    pytest.importorskip("IPython")
    import matplotlib.pyplot as plt

    from batchquad import _plot

    shown = []
    figure = plt.figure()
    _plot._show_once(figure)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("IPython.display.display", shown.append)
        figure._ipython_display_()
        assert shown == []  # the cell shows it
        plt.close(figure)
        figure._ipython_display_()
        figure._ipython_display_()
        assert shown == [figure, figure]  # in a later cell only this line does


# Driving


def test_a_progress_function_stops_the_run_and_keeps_the_result():
    for stop in (lambda p: np.greater_equal(p.evaluations, 20), lambda p: next(iter(())) if p.evaluations >= 20 else None):
        seen = []
        found = integrate(bump, PRIOR, max_evaluations=64, progress=lambda p: (seen.append(p), stop(p))[1])  # noqa: B023
        assert found.status == "interrupted" and found.reason == "the progress function said stop"
        assert found.has_evidence and 20 <= found.evaluations.rows < 40
        done = int(np.sum(found.evaluations["status"] == "value"))
        assert done == 20 == seen[-1].evaluations
    whole = integrate(bump, PRIOR, max_evaluations=40, resume=found)
    assert whole.log_z == integrate(bump, PRIOR, max_evaluations=40).log_z


def test_runs_say_what_they_do_to_logging(caplog):
    def flaky(theta):
        if theta[0] > 1.2:
            raise ValueError("too far")
        return bump(theta)

    with caplog.at_level(logging.INFO, logger="batchquad"):
        integrate(flaky, PRIOR, max_evaluations=24)
    said = [record.getMessage() for record in caplog.records]
    assert any("more points chosen" in line for line in said) and said[-1].startswith("the run has ended: budget")
    failures = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert failures and "failed (exception): ValueError: too far" in failures[0].getMessage()


def test_n_jobs_is_what_everyone_means():
    assert with_jobs(None, -1, None) == (cores() if cores() > 1 else None)
    assert with_jobs(None, -cores() - 5, 1.0) == 1 and with_jobs(None, 1, 3.0) == 1 and with_jobs("e", None, None) == "e"
    for wrong in (0, 1.5, True, "2"):
        with pytest.raises(InvalidInput, match="n_jobs"):
            with_jobs(None, wrong, None)
    with pytest.raises(InvalidInput, match="both given"):
        integrate(bump, PRIOR, n_jobs=2, executor=2)
    here = integrate(bump, PRIOR, max_evaluations=16)
    assert integrate(bump, PRIOR, max_evaluations=16, n_jobs=2).log_z == here.log_z


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupted_script_ends_with_130(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import time, batchquad\n"
        "def slow(t):\n    print('on', flush=True)\n    time.sleep(5)\n    return 0.0\n"
        "batchquad.integrate(slow, {'x': (0, 1)}, progress=False)\n"
    )
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "on\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted and resumable" in errors


# The program


def program(*words, **options):
    return subprocess.run([sys.executable, "-m", "batchquad", *words], capture_output=True, text=True, timeout=120, **options)


def test_the_program_comes_with_the_package(tmp_path):
    shown = program("--version")
    assert (shown.returncode, shown.stdout.split()) == (0, ["batchquad", batchquad.__version__])
    script = Path(sys.executable).with_name("batchquad")
    assert subprocess.run([script, "--version"], capture_output=True, text=True).stdout == shown.stdout
    (tmp_path / "problem.toml").write_text(
        '[[parameter]]\nname = "x"\nprior = { normal = { mean = 0, sd = 1 } }\n'
        f'[likelihood]\ncommand = [{json.dumps(sys.executable)}, "-c", "import sys; print(-float(sys.argv[1])**2)", "{{x}}"]\n'
        "[run]\nmax_evaluations = 12\n"
    )
    ran = program("run", "problem.toml", "-q", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    # ∫ exp(−x²) N(x; 0, 1) dx = 1/√3
    assert abs(json.loads(ran.stdout)["log_z"] + 0.5 * np.log(3)) < 0.01
    assert program("run", "nothing.toml", cwd=tmp_path).returncode == 2
    assert program("nonsense").returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_the_program_in_python_is_interrupted_as_elsewhere(tmp_path):
    (tmp_path / "problem.toml").write_text(
        '[[parameter]]\nname = "x"\nprior = { normal = { mean = 0, sd = 1 } }\n'
        '[likelihood]\nshell = true\ncommand = ["echo on >> began; sleep 5; echo 0"]\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "batchquad", "run", "problem.toml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not (tmp_path / "began").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in errors, errors
    assert "Resume with\n  batchquad run problem.toml" in errors


@pytest.mark.skipif(os.name == "nt", reason="terminals")
def test_init_asks_on_a_terminal(tmp_path):
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "batchquad", "init", "model"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path
    )
    os.close(theirs)
    os.write(ours, b"k\nunifrm(0, 1)\nuniform(0, 10)\n2k\n\npyhton\npython\n")
    said = b""
    while process.poll() is None or not said.endswith(b"in its place.\r\n"):
        try:
            said += os.read(ours, 4096)
        except OSError:  # nobody writes any more
            break
    assert process.wait(60) == 0, said
    assert b"did you mean `uniform`?" in said and b"begins with a letter" in said and b"did you mean `python`?" in said
    checked = program("check", "model/problem.toml", cwd=tmp_path)
    assert "k ~ uniform(low 0.0, high 10.0)" in checked.stdout and "log-likelihood 0.0" in checked.stdout, checked


def test_a_function_that_expects_names_is_told_about_pass_dict():
    prior = {"k": batchquad.Normal(0, 1), "c": batchquad.Normal(0, 1)}
    wrong = {
        lambda theta: -(theta["k"] ** 2): "if that is the point: it is an array, with pass_dict=True a dict",
        lambda k, c: -(k**2): "all parameters are in one argument, an array or, with pass_dict=True, a dict",
    }
    for function, advice in wrong.items():
        for vectorized in (False, True):
            result = batchquad.integrate(function, prior, max_evaluations=16, vectorized=vectorized, progress=False)
            assert advice in result.reason
    # An error of the function's own is its own affair.
    result = batchquad.integrate(lambda theta: (lambda k, c: 0.0)(theta), prior, max_evaluations=16, progress=False)
    assert "pass_dict=True" not in result.reason and "positional argument" in result.reason
