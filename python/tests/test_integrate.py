"""The whole of it in one call."""

import io
import math
import sys

import numpy as np
import pytest

import batchquad as bq
from problems import SETTINGS, TOLERANCE, TRUTH, gaussian, prior, reference


def test_the_evidence_of_a_gaussian():
    result = reference()
    assert abs(result.log_z - TRUTH) < TOLERANCE
    assert abs(result.log_z - TRUTH) < 5 * result.log_z_sd
    assert (result.logz, result.logzerr) == (result.log_z, result.log_z_sd)
    # 95 % of Student's t with four degrees of freedom, in units of what holds 68.27 %; what was not seen can only add.
    assert math.isclose(result.log_z_high - result.log_z_low, 2 * 2.4320 * result.log_z_sd, rel_tol=1e-4)
    assert result.log_z - result.log_z_low <= result.log_z_high - result.log_z
    assert result.log_z_interval() == (result.log_z_low, result.log_z_high)
    low, high = result.log_z_interval(0.6826894921)
    assert math.isclose(high - low, 2 * result.log_z_sd, rel_tol=1e-6)
    with pytest.raises(bq.InvalidInput, match="probability of an interval is 1.5"):
        result.log_z_interval(1.5)
    assert result.status == "budget" and result.evaluations.rows == 48


def test_a_run_that_has_not_arrived_says_where_log_z_mostly_is():
    # Too few values for a quadratic in three parameters.
    wide = {name: bq.Normal(0, 3) for name in "abc"}
    result = bq.integrate(lambda t: -0.5 * float(((t - 1) ** 2).sum()) / 0.3**2, wide, batch=2, max_evaluations=9)
    truth = 3 * math.log(0.3) - 0.5 * 3 * (math.log(9.09) + 1 / 9.09)
    assert result.diagnosis.verdict == "do-not-trust" and result.log_z_sd >= 40
    assert result.log_z_low <= truth <= result.log_z_high
    # Such a run may be far too low, and is hardly ever much too high.
    assert result.log_z - result.log_z_low < 0.1 * (result.log_z_high - result.log_z)


def test_the_same_seed_gives_the_same_bits_and_another_one_others():
    assert reference().log_z == reference().log_z
    assert reference(seed=1).log_z != reference().log_z


def test_a_target_is_met():
    result = reference(target_sd=0.02, max_evaluations=400)
    assert result.status == "converged" and result.log_z_sd <= 0.02


def test_vectorised_calls_are_the_same_run():
    shapes = []

    def many(thetas):
        shapes.append(thetas.shape)
        return -2.0 * ((thetas[:, 0] - 1.0) ** 2 + thetas[:, 1] ** 2)

    assert bq.integrate(many, prior(), vectorized=True, **SETTINGS).log_z == reference().log_z
    assert shapes[0] == (8, 2) and sum(n for n, _ in shapes) == 48

    def by_name(columns):
        return -2.0 * ((columns["x"] - 1.0) ** 2 + columns["y"] ** 2), [{"x": x} for x in columns["x"].tolist()]

    result = bq.integrate(by_name, prior(), vectorized=True, pass_dict=True, **SETTINGS)
    assert result.log_z == reference().log_z
    assert result.blobs[5] == {"x": result.evaluations["x"][5]}


def test_a_bad_point_in_a_vectorised_call_costs_only_itself():
    def many(thetas):
        if (thetas[:, 0] > 1.5).any():
            raise ValueError("one of them is too large")
        return -2.0 * ((thetas[:, 0] - 1.0) ** 2 + thetas[:, 1] ** 2)

    result = bq.integrate(many, prior(), vectorized=True, **SETTINGS)
    failed = result.evaluations["status"] == "failed"
    assert (failed == (result.evaluations["x"] > 1.5)).all() and failed.any()
    wrong = bq.integrate(lambda thetas: [1.0, 2.0, 3.0], prior(), vectorized=True, **SETTINGS)
    assert wrong.status == "failed" and set(wrong.failures) == {"parse"}


def test_async_in_one_thread():
    result = reference(schedule="async")
    assert abs(result.log_z - TRUTH) < TOLERANCE and result.evaluations.rows == 48


def test_evaluations_made_elsewhere_are_a_start():
    points = np.random.default_rng(1).normal(size=(20, 2))
    values = np.array([gaussian(p) for p in points])
    for initial in [(points, values), {"x": points[:, 0], "y": points[:, 1], "log_likelihood": values}]:
        result = bq.integrate(gaussian, prior(), initial=initial, max_evaluations=40)
        assert result.imported.rows == 20 and result.evaluations.rows == 20
        assert abs(result.log_z - TRUTH) < 10 * TOLERANCE
    frame = reference().evaluations.to_pandas()
    assert bq.integrate(gaussian, prior(), initial=frame, max_evaluations=60).imported.rows == 48


def test_all_settings_of_the_core_are_known():
    from batchquad._settings import _KNOWN

    # Those that are absent unless they are set.
    assert set(_KNOWN) - set(bq.Study(prior()).settings) == {"batch_growth", "known_kernel", "noise_sd", "repeats", "start", "stop_gain"}
    assert set(bq.Study(prior()).settings) <= set(_KNOWN)


def test_further_settings_have_their_names_and_are_checked():
    assert reference(kernel="ard", acquisition="variance-reduction", initial_size=10).settings["kernel"] == "ard"
    for settings, message in [
        ({"batch": 0}, "batch is 0, expected at least 1"),
        ({"batch": "many"}, 'batch is "many", expected a whole number'),
        ({"batch": -1}, "batch is -1, expected a whole number"),
        ({"target_sd": math.nan}, "target_sd is nan, expected"),
        ({"target_sd": -1.0}, "target_sd is -1.0, expected"),
        ({"surrogate": "wsabi"}, 'surrogate is "wsabi", expected one of "auto", "log", "plain", "wsabi-l", "wsabi-m"'),
        ({"schedule": "never"}, 'schedule is "never", expected'),
        ({"penalisation": {"slope": 1, "power": 2, "colour": 3}}, "penalisation is"),
        ({"max_evaluations": np.int64(0)}, "max_evaluations is 0"),
    ]:
        with pytest.raises(ValueError, match=message) as caught:
            bq.integrate(gaussian, prior(), **settings)
        assert isinstance(caught.value, bq.InvalidInput)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'max_evaluation'\. Did you mean 'max_evaluations'"):
        bq.integrate(gaussian, prior(), max_evaluation=3)


def test_arguments_that_contradict_each_other_are_refused():
    for options, message in [
        ({"timeout": 1.0}, "timeout with executor=None"),
        ({"timeout": -1.0, "executor": 2}, "timeout is -1.0"),
        ({"vectorized": True, "executor": 2}, "vectorized=True with an executor"),
        ({"executor": 0}, "executor is 0"),
        ({"executor": True}, "executor is True"),
        ({"executor": "threads"}, "executor is 'threads'"),
        ({"workers": 0, "executor": 2}, "workers is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5, expected a whole number"),
        ({"retries": -1}, "retries is -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            bq.integrate(gaussian, prior(), **options)
    with pytest.raises(ValueError, match="log_likelihood is 3, expected a function"):
        bq.integrate(3, prior())


def test_progress_is_told_to_a_function():
    seen = []
    bq.integrate(gaussian, prior(), progress=seen.append, **SETTINGS)
    assert seen[-1].evaluations == seen[-1].max_evaluations == 48
    assert [p.evaluations for p in seen] == sorted(p.evaluations for p in seen)
    assert "log Z" in str(seen[-1])


def test_progress_is_a_line_on_a_terminal_and_nothing_in_a_log_file(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("batchquad._progress._EVERY", 0.0)
    for stream, shown in [(Terminal(), True), (io.StringIO(), False)]:
        monkeypatch.setattr(sys, "stderr", stream)
        bq.integrate(gaussian, prior(), **SETTINGS)
        text = stream.getvalue()
        assert ("log Z -2.0" in text) is shown
        assert "\n" not in text
        # What is left on the line at the end is blank.
        assert text.rpartition("\r")[0].rpartition("\r")[2].strip() == ""
        monkeypatch.setattr(sys, "stderr", quiet := stream.__class__())
        bq.integrate(gaussian, prior(), progress=False, **SETTINGS)
        assert quiet.getvalue() == ""


def test_progress_in_a_log_file_if_asked_for(monkeypatch):
    monkeypatch.setattr("batchquad._progress._EVERY_LINE", 0.0)
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    bq.integrate(gaussian, prior(), progress=True, **SETTINGS)
    assert log.getvalue().splitlines()[-1].startswith("batchquad: 48/48 log Z")
    assert "\r" not in log.getvalue()


def test_an_exception_in_the_progress_function_leaves_nothing_behind(tmp_path):
    def stop(progress):
        if progress.evaluations >= 10:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        bq.integrate(gaussian, prior(), progress=stop, store=tmp_path / "store", executor=2, **SETTINGS)
    assert bq.integrate(gaussian, prior(), store=tmp_path / "store", **SETTINGS).log_z == reference().log_z
