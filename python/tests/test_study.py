"""Ask and tell."""

import math

import numpy as np
import pytest

import batchquad as bq
from problems import SETTINGS, TOLERANCE, TRUTH, gaussian, prior


def test_ask_and_tell_to_the_end():
    study = bq.Study(prior(), **SETTINGS)
    while jobs := study.ask():
        for job in jobs:
            study.tell(job, gaussian(job.theta))
    assert study.result().status == "budget" and study.ask() == []
    assert abs(study.estimate().log_z - TRUTH) < 5 * TOLERANCE
    assert study.estimate() == (study.result().log_z, study.result().log_z_sd)


def test_jobs_say_all_that_is_needed():
    job = bq.Study(prior()).ask(1)[0]
    assert job.parameters == {"x": job.theta[0], "y": job.theta[1]}
    assert job.id == 0 and isinstance(job.seed, int)


def test_pending_points_are_avoided():
    study = bq.Study(prior(), max_evaluations=100)
    for job in study.ask(12):
        study.tell(job, gaussian(job.theta))
    first, second = study.ask(4), study.ask(4)
    assert [job.id for job in study.pending()] == [job.id for job in first + second]
    points = np.array([job.theta for job in first + second])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2) + 10 * np.eye(8)
    assert apart.min() > 1e-3
    assert study.result().status == "unfinished" and "8 evaluations are pending" in study.result().reason


def test_telling_again_and_otherwise():
    study = bq.Study(prior())
    job, other = study.ask(2)
    study.tell(job, -1.0)
    study.tell(job.id, -1.0)
    assert study.result().conflicts == []
    with pytest.warns(UserWarning, match="the first counts"):
        study.tell(job, -2.0)
    assert study.result().conflicts == [0] and study.result().evaluations["log_likelihood"][0] == -1.0
    study.fail(other, "the cable came loose", kind="lost-worker")
    assert study.result().failures == {"lost-worker": 1}
    study.tell(other, -3.0)
    assert study.result().failures == {} and study.result().evaluations["log_likelihood"][1] == -3.0


def test_what_cannot_be_told_is_refused():
    study = bq.Study(prior())
    job = study.ask(1)[0]
    for value in [None, "abc", 1j, True, [1.0, 2.0]]:
        with pytest.raises(ValueError, match="expected a real number"):
            study.tell(job, value)
    with pytest.raises(ValueError, match="job 99 is unknown"):
        study.tell(99, 0.0)
    with pytest.raises(ValueError, match="job is -1"):
        study.tell(-1, 0.0)
    with pytest.raises(ValueError, match="kind of failure"):
        study.fail(job, "x", kind="bad luck")
    with pytest.raises(ValueError, match="at least 1"):
        study.ask(0)
    assert study.pending()[0].id == job.id
    study.tell(job, math.nan)
    assert study.result().failures == {"nan": 1}


def test_no_evidence_before_the_first_value():
    study = bq.Study(prior())
    with pytest.raises(bq.NoEvidence):
        study.estimate()
    assert study.result().status == "unfinished" and not study.result().has_evidence
    assert "none" in repr(study.result())


def test_settings_can_be_changed():
    study = bq.Study(prior(), max_evaluations=8)
    for job in study.ask(8):
        study.tell(job, gaussian(job.theta))
    assert study.ask() == []
    study.change(max_evaluations=16)
    assert len(study.ask(4)) == 4
    with pytest.raises(ValueError, match="max_evaluations"):
        study.change(max_evaluations=0)


def test_imports_are_checked():
    study = bq.Study({"x": bq.Uniform(0, 1)})
    assert study.import_evaluations([[0.5], [0.25]], [0.0, -math.inf]) == 2
    assert study.import_evaluations([[0.5]], [0.0]) == 0
    for points, values, message in [
        ([[2.0]], [0.0], "outside the support"),
        ([[0.5]], [math.nan], "expected a finite number or -inf"),
        ([[0.5], [0.6]], [0.0], "has length 1, expected 2"),
        ([[0.5, 0.6]], [0.0], "has length 2, expected 1"),
        ({"x": [0.5]}, None, "the column 'log_likelihood' is missing"),
        ("table.csv", None, "expected a table"),
    ]:
        with pytest.raises(ValueError, match=message):
            study.import_evaluations(points, values)
    assert study.result().imported.rows == 2


def test_a_closed_study_can_be_read_but_not_written():
    with bq.Study(prior()) as study:
        job = study.ask(1)[0]
    assert len(study.pending()) == 1 and "1 pending" in repr(study)
    with pytest.raises(ValueError, match="study is closed"):
        study.tell(job, 0.0)


def test_two_thousand_nodes_close_together():
    study = bq.Study({"x": bq.Normal(0, 1)}, max_evaluations=3000)
    points = np.repeat(np.linspace(-3, 3, 500), 4)[:, None]
    points[1::4] += 1e-14
    study.import_evaluations(points + 1e-9 * np.arange(2000)[:, None] % 3e-9, -0.5 * points[:, 0] ** 2)
    # ∫ exp(−x²/2) N(x; 0, 1) = 1/√2
    assert abs(study.estimate().log_z + 0.5 * math.log(2)) < 1e-3
