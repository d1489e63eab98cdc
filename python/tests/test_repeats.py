"""Independent runs in one call, and what is said of a target."""

from __future__ import annotations

import math
import pickle
from pathlib import Path

import numpy as np
import pytest

import batchquad as bq

PRIOR = {"x": bq.Normal(0, 1), "y": bq.Normal(0, 1)}
#: ∫ exp(−|θ|²/2) N(θ; 0, I) dθ = ½.
TRUTH = math.log(0.5)


def log_likelihood(theta: np.ndarray) -> float:
    return float(-0.5 * theta @ theta)


def test_three_runs_are_pooled_and_shown() -> None:
    result = bq.integrate(log_likelihood, PRIOR, max_evaluations=20, repeats=3, batch=4, seed=3)
    assert abs(result.log_z - TRUTH) < 0.05
    assert result.evaluations.rows == 60
    assert result.evaluations["repeat"].tolist() == [1] * 20 + [2] * 20 + [3] * 20
    assert result.repeats["repeat"].tolist() == [1, 2, 3]
    assert result.repeats["evaluations"].tolist() == [20, 20, 20]
    assert np.all(np.abs(result.repeats["log_z"] - TRUTH) < 0.3)
    assert set(result.rounds["repeat"].tolist()) == {1, 2, 3}
    assert result.agreement is not None and result.agreement["begun"] == 3
    assert result.diagnosis is not None and "agreement" in result.diagnosis.findings["name"].tolist()
    assert "2 of 3: " in repr(result) and "in each of 3 repeats" in repr(result)
    assert "2 of 3: " in result.report()
    # The first is the run without repeats, and the second that of its seed.
    for k in range(2):
        seed = int(result.repeats["seed"][k])
        alone = bq.integrate(log_likelihood, PRIOR, max_evaluations=20, batch=4, seed=seed)
        assert alone.log_z == result.repeats["log_z"][k]
        assert alone.repeats.rows == 0 and alone.agreement is None and "repeat" not in alone.evaluations
    again = pickle.loads(pickle.dumps(result))
    assert again.samples(5).tolist() == result.samples(5).tolist()


def test_a_store_gets_more_repeats_and_not_fewer(tmp_path: Path) -> None:
    def go(**settings: int) -> bq.Result:
        return bq.integrate(log_likelihood, PRIOR, max_evaluations=16, batch=4, store=tmp_path / "run", **settings)

    first = go()
    grown = go(repeats=2)
    assert grown.repeats["log_z"][0] == first.log_z and grown.evaluations.rows == 32
    assert go().evaluations.rows == 32, "left open, the number is that of the store"
    with pytest.raises(bq.StoreDiffers, match="repeats is 1, the store has 2"):
        go(repeats=1)
    further = bq.integrate(log_likelihood, PRIOR, max_evaluations=16, batch=4, repeats=3, resume=grown)
    assert further.evaluations.rows == 48


def test_stopped_in_the_second_run_it_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    settings = {"max_evaluations": 16, "batch": 4, "repeats": 3}
    whole = bq.integrate(log_likelihood, PRIOR, **settings)
    stopped = bq.integrate(
        log_likelihood, PRIOR, store=tmp_path / "run", progress=lambda p: p.evaluations >= 22, **settings
    )
    assert stopped.status == "interrupted" and 22 <= stopped.evaluations.rows < 48
    resumed = bq.integrate(log_likelihood, PRIOR, store=tmp_path / "run", **settings)
    assert (resumed.log_z, resumed.log_z_sd) == (whole.log_z, whole.log_z_sd)


@pytest.mark.parametrize("repeats", [0, -1, 1.5, "three", 1000])
def test_numbers_that_are_none_are_refused(repeats: object) -> None:
    with pytest.raises(bq.InvalidInput, match="repeats|1.5|three|-1"):
        bq.integrate(log_likelihood, PRIOR, repeats=repeats)  # type: ignore[arg-type]


def test_a_target_out_of_reach_is_named_and_small_gains_end_a_run() -> None:
    short = bq.integrate(log_likelihood, PRIOR, max_evaluations=48, batch=4, target_sd=1e-12)
    assert short.status == "budget" and short.outlook is not None and "target_sd = " in short.outlook
    assert short.evaluations_needed is None or short.evaluations_needed > 48
    assert bq.integrate(log_likelihood, PRIOR, max_evaluations=24).outlook is None
    ended = bq.integrate(log_likelihood, PRIOR, max_evaluations=200, batch=4, stop_gain=0.9)
    assert ended.status == "stalled" and "stop_gain = 0.9" in ended.reason and ended.evaluations.rows < 200
    with pytest.raises(bq.InvalidInput, match="stop_gain is 1.0, expected a share between 0 and 1"):
        bq.integrate(log_likelihood, PRIOR, stop_gain=1.0)
