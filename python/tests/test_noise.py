"""Log-likelihoods that come with the standard deviation of their noise, and points to begin with."""

import json
import math
import pickle
import subprocess

import batchquad as bq
import numpy as np
import pandas as pd
import pytest


PRIOR = {"x": bq.Normal(0, 1), "y": bq.Normal(0, 1)}
CENTRE = np.array([1.0, 0.5])
#: ∫ exp(−|θ − c|²/2s²) N(θ; 0, 1) dθ with s = 0.3.
TRUTH = sum(0.5 * math.log(0.09 / 1.09) - 0.5 * m * m / 1.09 for m in CENTRE)


def exact(theta):
    return -0.5 * float((theta - CENTRE) @ (theta - CENTRE)) / 0.09


def noisy(theta):
    """The value and its standard deviation, which is small on one side and large on the other; noise is a function of the point."""
    sd = 0.05 if theta[0] > 1.0 else 1.0
    seed = int.from_bytes(np.asarray(theta, dtype=float).tobytes()[:6], "little")
    return exact(theta) + np.random.default_rng(seed).normal(0, sd), sd


def test_a_function_may_return_a_pair():
    result = bq.integrate(noisy, PRIOR, max_evaluations=64)
    assert abs(result.log_z - TRUTH) < 4 * result.log_z_sd
    assert result.log_z_sd < 0.3
    assert set(result.evaluations["sd"]) == {0.05, 1.0}
    assert not result.blobs
    ignoring = bq.integrate(lambda theta: noisy(theta)[0], PRIOR, max_evaluations=64)
    assert "sd" not in ignoring.evaluations
    finding = dict(zip(result.diagnosis.findings["name"], result.diagnosis.findings["sentence"], strict=True))["given-noise"]
    assert "64 values came with a standard deviation, from 0.05 to 1.00" in finding


@pytest.mark.parametrize("executor", [None, 2])
def test_numbers_are_sds_and_the_rest_are_blobs(executor):
    def returned(theta):
        value, sd = noisy(theta)
        kind = int(abs(theta[0]) * 1e6) % 5
        return [(value, sd), (value, sd, "both"), (value, None, 3.5), (value, "note"), (value, np.float32(0.5))][kind]

    result = bq.integrate(returned, PRIOR, max_evaluations=40, executor=executor)
    for row, (x, sd) in enumerate(zip(result.evaluations["x"], result.evaluations["sd"], strict=True)):
        kind = int(abs(x) * 1e6) % 5
        assert result.blobs.get(row) == [None, "both", 3.5, "note", None][kind]
        assert math.isnan(sd) if kind in (2, 3) else sd == (0.5 if kind == 4 else noisy(np.array([x]).repeat(2))[1])


def test_vectorized_functions_return_columns():
    def all_at_once(thetas):
        values, sds = zip(*map(noisy, thetas), strict=True)
        return np.array(values), np.array(sds)

    together = bq.integrate(all_at_once, PRIOR, vectorized=True, max_evaluations=32)
    assert together.log_z == bq.integrate(noisy, PRIOR, max_evaluations=32).log_z
    with_blobs = bq.integrate(lambda t: (*all_at_once(t), [{"n": len(t)}] * len(t)), PRIOR, vectorized=True, max_evaluations=32)
    assert with_blobs.log_z == together.log_z
    assert len(with_blobs.blobs) == 32
    without = bq.integrate(lambda t: (all_at_once(t)[0], None, ["b"] * len(t)), PRIOR, vectorized=True, max_evaluations=32)
    assert "sd" not in without.evaluations
    assert without.blobs[0] == "b"
    # Three values for three points are no columns.
    three = bq.integrate(lambda t: tuple(exact(one) for one in t), PRIOR, vectorized=True, batch=3, max_evaluations=12)
    assert "sd" not in three.evaluations
    assert set(three.evaluations["status"]) == {"value"}


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_an_sd_that_is_none_is_a_failure(bad):
    result = bq.integrate(lambda t: (exact(t), bad if t[0] > 0 else 0.1), PRIOR, max_evaluations=16)
    failed = result.evaluations["status"] == "failed"
    assert (failed == (result.evaluations["x"] > 0)).all()
    assert set(result.evaluations["kind"][failed]) == {"parse"}
    message = result.evaluations["message"][failed][0]
    assert "the sd of the log-likelihood" in message
    assert "expected a finite number ≥ 0" in message


def test_zero_is_zero_whatever_its_sd():
    result = bq.integrate(lambda t: (exact(t), 0.1) if t[0] > -0.5 else (-math.inf, math.nan), PRIOR, max_evaluations=24)
    zero = result.evaluations["x"] <= -0.5
    assert set(result.evaluations["status"]) == {"value"}
    assert np.isneginf(result.evaluations["log_likelihood"][zero]).all()
    assert np.isnan(result.evaluations["sd"][zero]).all()


def test_telling_with_sds(tmp_path, program):
    study = bq.Study(PRIOR, store=tmp_path / "store")
    jobs = study.ask(8)
    study.tell(jobs[0], -1.0, sd=0.5)
    study.tell(jobs[1], (-2.0, 0.25))
    study.tell(jobs[2], (-3.0, 0.25, {"kept": True}))
    study.tell(jobs[0], -1.5, sd=0.5)
    with pytest.warns(UserWarning, match="another value already"):
        study.tell(jobs[0], -1.75)
    for bad in (-1, math.nan, math.inf):
        with pytest.raises(bq.InvalidInput, match=r"sd is .*, expected a finite number >= 0"):
            study.tell(jobs[3], -1.0, sd=bad)
    with pytest.raises(bq.InvalidInput, match="sd is 'wide'"):
        study.tell(jobs[3], -1.0, sd="wide")
    for job in jobs[3:]:
        study.tell(job, *noisy(job.theta)[:1], sd=noisy(job.theta)[1])
    result = study.result()
    of = result.evaluations["id"] == 0
    assert result.evaluations["log_likelihood"][of].tolist() == [-1.0, -1.5]
    assert result.evaluations["sd"][of].tolist() == [0.5, 0.5]
    assert result.conflicts == [0]
    assert result.blobs == {2: {"kept": True}}
    estimate = study.estimate()
    study.close()
    with bq.Study.open(tmp_path / "store") as again:
        assert again.estimate() == estimate
    shown = json.loads(subprocess.run([program, "result", tmp_path / "store", "--json"], capture_output=True, check=True).stdout)
    assert shown["log_z"] == estimate.log_z


def test_a_value_with_an_sd_is_replaced():
    study = bq.Study(PRIOR)
    jobs = study.ask(8)
    for job in jobs:
        study.tell(job, noisy(job.theta))
    right = study.estimate()
    study.tell(jobs[3], (500.0, 0.1))
    assert study.estimate().log_z > right.log_z + 100
    study.tell(jobs[3], noisy(jobs[3].theta), replace=True)
    assert study.estimate() == right
    study.tell(jobs[3], -2.5, sd=0.125, replace=True)
    result = study.result()
    of = result.evaluations["id"] == jobs[3].id
    assert (result.evaluations["log_likelihood"][of].tolist(), result.evaluations["sd"][of].tolist()) == ([-2.5], [0.125])
    assert result.replaced == [jobs[3].id] and result.conflicts == []


def test_a_noisy_result_is_kept_and_goes_on(tmp_path):
    start = {"x": 1.25, "y": 0.5}
    whole = bq.integrate(noisy, PRIOR, start=start, max_evaluations=40)
    # Where a batch ends by itself, so that the batches of both runs are the same.
    so_far = int(np.flatnonzero(np.diff(whole.evaluations["batch"]))[2]) + 1
    assert 10 < so_far < 40
    first = bq.integrate(noisy, PRIOR, start=[1.25, 0.5], max_evaluations=so_far)
    first.save(tmp_path / "run.json")
    for kept in (pickle.loads(pickle.dumps(first)), bq.Result.load(tmp_path / "run.json")):
        assert kept.evaluations["sd"].tolist() == first.evaluations["sd"].tolist()
        assert np.array_equal(kept.samples(50), first.samples(50))
        assert kept.settings["start"] == [start]
        assert "start = " in kept.report() and f"{so_far} values came with a standard deviation" in kept.report()
        for choice in ({}, {"start": start}, {"start": [1.25, 0.5]}):
            more = bq.integrate(noisy, PRIOR, max_evaluations=40, resume=kept, **choice)
            assert more.evaluations["sd"].tolist() == whole.evaluations["sd"].tolist()
            assert (more.log_z, more.log_z_sd) == (whole.log_z, whole.log_z_sd)
        with pytest.raises(bq.StoreDiffers, match="start"):
            bq.integrate(noisy, PRIOR, start=[0, 0], resume=kept)


def test_importing_with_sds():
    points = np.random.default_rng(1).normal(size=(40, 2)) * 0.4 + CENTRE
    values, sds = map(np.array, zip(*map(noisy, points), strict=True))
    table = {"x": points[:, 0], "y": points[:, 1], "log_likelihood": values, "sd": sds}
    estimates = []
    for given in [(points, values, sds), (table,), (pd.DataFrame(table),), ((points, values, sds),)]:
        study = bq.Study(PRIOR)
        assert study.import_evaluations(*given) == 40
        estimates.append(study.estimate())
        assert study.result().imported["sd"].tolist() == sds.tolist()
    assert all(estimate == estimates[0] for estimate in estimates)
    assert estimates[0] != _estimate(points, values)
    some = np.where(np.arange(40) % 2, sds, np.nan)
    study = bq.Study(PRIOR)
    study.import_evaluations(points, values, some)
    assert np.array_equal(study.result().imported["sd"], some, equal_nan=True)
    with pytest.raises(bq.InvalidInput, match=r"sd is -1(\.0)?, expected a finite number"):
        bq.Study(PRIOR).import_evaluations(points, values, -np.ones(40))
    with pytest.raises(bq.InvalidInput, match="standard deviations"):
        bq.Study(PRIOR).import_evaluations(points, values, sds[:3])
    result = bq.integrate(noisy, PRIOR, initial=table, max_evaluations=56)
    assert result.imported.rows == 40
    assert abs(result.log_z - TRUTH) < 4 * result.log_z_sd


def _estimate(points, values):
    study = bq.Study(PRIOR)
    study.import_evaluations(points, values)
    return study.estimate()


# Points to begin with


@pytest.mark.parametrize(
    "start", [{"y": 0.5, "x": 1.25}, [1.25, 0.5], np.array([1.25, 0.5]), [{"x": 1.25, "y": 0.5}], [(1.25, 0.5)], np.array([[1.25, 0.5]])]
)
def test_a_start_is_evaluated_first(start):
    result = bq.integrate(exact, PRIOR, start=start, max_evaluations=12)
    assert (result.evaluations["x"][0], result.evaluations["y"][0]) == (1.25, 0.5)
    assert result.settings["start"] == [{"x": 1.25, "y": 0.5}]
    plain = bq.integrate(exact, PRIOR, max_evaluations=12)
    assert result.evaluations["x"][1:9].tolist() == plain.evaluations["x"][:8].tolist()
    assert "start" not in plain.settings


def test_several_starts_and_a_store(tmp_path):
    starts = [{"x": 1.25, "y": 0.5}, [-1, 2]]
    whole = bq.integrate(exact, PRIOR, start=starts, max_evaluations=24)
    bq.integrate(exact, PRIOR, start=starts, max_evaluations=10, store=tmp_path / "store")
    resumed = bq.integrate(exact, PRIOR, max_evaluations=24, store=tmp_path / "store")
    assert resumed.evaluations["x"][:2].tolist() == [1.25, -1.0]
    assert resumed.evaluations["x"][:10].tolist() == whole.evaluations["x"][:10].tolist()
    with pytest.raises(bq.StoreDiffers, match="start"):
        bq.integrate(exact, PRIOR, start=[0, 0], store=tmp_path / "store")
    with bq.Study.open(tmp_path / "store") as study, pytest.raises(bq.InvalidInput, match="start"):
        study.change(start=[0, 0])


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ({"x": 1}, "start is .*y has none"),
        ({"x": 1, "y": 1, "z": 1}, "z is not a parameter"),
        ([1, 2, 3], r"start has 3 numbers, expected 2: x, y"),
        ([[1, 2], [1]], r"start\[1\] has 1 numbers, expected 2"),
        ({"x": math.nan, "y": 1}, r"start\['x'\] is nan, expected a finite number"),
        ({"x": "1", "y": 1}, r"start\['x'\] is '1', expected a number"),
        ("near", "start is 'near', expected a dict"),
        (3, "start is 3, expected a dict"),
        ([[1, 2], "near"], r"start\[1\] is 'near', expected a dict"),
    ],
)
def test_what_cannot_be_a_start_is_refused(start, message):
    with pytest.raises(bq.InvalidInput, match=message):
        bq.integrate(exact, PRIOR, start=start)


def test_a_start_outside_the_prior_is_refused():
    with pytest.raises(bq.InvalidInput, match=r"start, parameter \"x\" is 2"):
        bq.integrate(exact, {"x": bq.Uniform(0, 1), "y": bq.Normal(0, 1)}, start=[2, 0])
