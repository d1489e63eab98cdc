"""Angles and phases."""

import matplotlib
import numpy as np
import pytest

import batchquad as bq

matplotlib.use("agg")


def log_likelihood(theta):
    assert -np.pi <= theta[0] <= np.pi
    return 8 * np.cos(theta[0] - 3.1)


@pytest.fixture(scope="module")
def result():
    prior = {"direction": bq.Uniform(-np.pi, np.pi, periodic=True)}
    return bq.integrate(log_likelihood, prior, max_evaluations=32, seed=1)


def test_a_peak_across_the_ends_is_one_peak(result):
    exact = np.log(np.i0(8))
    # As for a peak in the middle of its range.
    assert abs(result.log_z - exact) < 0.01 and abs(result.log_z - exact) < 4 * result.log_z_sd + 1e-6
    low, high = result.marginal("direction").interval(0.95)
    assert low < 3.1 < high and high - low < 2.0
    draws = result.samples(2000)[:, 0]
    assert abs(np.angle(np.mean(np.exp(1j * draws))) - 3.1) < 0.05


def test_truths_are_taken_round_to_the_peak(result):
    figure = result.plot_corner(truths={"direction": 3.1 - 2 * np.pi})
    (line,) = [line for line in figure.axes[0].lines if len(set(line.get_xdata())) == 1]
    assert line.get_xdata()[0] == pytest.approx(3.1)


def test_it_is_kept_in_a_store_and_in_a_file(tmp_path, result):
    prior = {"direction": bq.Uniform(-np.pi, np.pi, periodic=True)}
    # Between two batches: a budget that cuts one short leads to other points.
    first = int(np.searchsorted(result.evaluations["batch"], 4))
    stored = bq.integrate(log_likelihood, prior, store=tmp_path / "s", max_evaluations=first, seed=1)
    stored = bq.integrate(log_likelihood, prior, store=tmp_path / "s", max_evaluations=32, seed=1)
    assert (stored.log_z, stored.log_z_sd) == (result.log_z, result.log_z_sd)
    with pytest.raises(bq.StoreDiffers):
        bq.Study({"direction": bq.Uniform(-np.pi, np.pi)}, store=tmp_path / "s")
    result.save(tmp_path / "result.json")
    again = bq.Result.load(tmp_path / "result.json")
    np.testing.assert_array_equal(again.samples(10), result.samples(10))


def test_values_from_elsewhere_may_lie_anywhere_on_the_circle():
    angles = np.linspace(0.2, 2 * np.pi, 24, endpoint=False)[:, None]
    study = bq.Study({"direction": bq.Uniform(-np.pi, np.pi, periodic=True)})
    study.import_evaluations(angles, 8 * np.cos(angles[:, 0] - 3.1))
    assert abs(study.estimate().log_z - np.log(np.i0(8))) < 0.01


@pytest.mark.parametrize("value", ["yes", 1.0, None])
def test_what_is_neither_true_nor_false_is_refused(value):
    with pytest.raises(bq.InvalidInput, match="periodic of Uniform"):
        bq.Uniform(0, 1, periodic=value)
