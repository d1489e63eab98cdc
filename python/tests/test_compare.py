"""Models side by side."""

import math

import numpy as np
import pytest

import batchquad as bq
from problems import reference


def coin(prior, **options):
    """Nine heads of twelve."""
    return bq.integrate(lambda t: 9 * math.log(t[0]) + 3 * math.log1p(-t[0]), {"p": prior}, max_evaluations=40, **options)


@pytest.fixture(scope="module")
def coins():
    return {"fair": coin(bq.Beta(2000, 2000)), "biased": coin(bq.Beta(1, 1))}


#: 2⁻¹² and B(10, 4); the biased coin's next head has probability 10/14.
FAIR, BIASED = 2.0**-12, 6 / (10 * 11 * 12 * 13)


def test_probabilities_and_factors(coins):
    found = bq.compare(coins)
    assert found.best == "biased"
    assert abs(found.probabilities["biased"] - BIASED / (FAIR + BIASED)) < 0.01
    assert abs(found["log_bayes_factor"][0] - math.log(FAIR / BIASED)) < 0.02
    assert found["log_bayes_factor"][1] == 0.0 and abs(sum(found.probabilities.values()) - 1) < 1e-12


def test_prior_probabilities(coins):
    found = bq.compare(coins, prior={"fair": 9, "biased": 1})
    assert abs(found.probabilities["biased"] - BIASED / (9 * FAIR + BIASED)) < 0.01
    # Bayes factors do not depend on them.
    assert found["log_bayes_factor"][0] == bq.compare(coins)["log_bayes_factor"][0]
    assert found.best == "biased"


def test_model_averaged_expectations(coins):
    truth = (FAIR * 0.5 + BIASED * 10 / 14) / (FAIR + BIASED)
    mean, sd = bq.compare(coins).expect(lambda t: t[0])
    assert abs(mean - truth) < 5e-3 and 0 < sd < 0.02
    by_name = bq.compare(coins).expect({"fair": lambda p: 0.5, "biased": lambda p: p["p"]}, pass_dict=True)
    assert abs(by_name.mean - truth) < 5e-3
    even = bq.compare(coins, prior={"fair": 9, "biased": 1}).expect(lambda t: t[0])
    assert abs(even.mean - (9 * FAIR * 0.5 + BIASED * 10 / 14) / (9 * FAIR + BIASED)) < 5e-3


def test_numbers_alone_can_be_compared():
    found = bq.compare({"a": (-1.0, 0.0), "b": (-1.0, 0.0)})
    np.testing.assert_allclose(found["probability"], 0.5)
    with pytest.raises(ValueError, match="numbers alone have no expectations"):
        found.expect(lambda t: 0.0)


def test_what_cannot_be_compared_is_refused(coins):
    for models, prior, message in [
        ({}, None, "models is empty"),
        ({"a": 3.0}, None, "model 'a' is 3.0, expected"),
        ({"a": (math.nan, 1.0)}, None, "expected a finite number"),
        ({"a": (0.0, -1.0)}, None, "log_z_sd of model 0"),
        (coins, {"fair": 1}, "prior probability of model 'biased' is None"),
        (coins, {"fair": 1, "biased": -1}, "is -1, expected a number > 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            bq.compare(models, prior)
    nothing = bq.integrate(lambda t: -math.inf, {"x": (0, 1)}, max_evaluations=8)
    with pytest.raises(bq.NoEvidence):
        bq.compare({"a": nothing})


def test_html_is_escaped():
    html = bq.compare({"<b>bold</b>": (0.0, 1.0), "b": reference()})._repr_html_()
    assert "<b>bold" not in html and "&lt;b&gt;bold" in html
