"""ProcessPoolExecutor."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import batchquad as bq
from problems import SETTINGS, gaussian, kills_itself, prior, raises, reference, slow_gaussian


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_two_processes_give_the_same_bits(method):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
        result = bq.integrate(slow_gaussian, prior(), executor=pool, **SETTINGS)
    assert result.log_z == reference().log_z
    assert len(set(result.evaluations["worker"])) == 2


def test_exceptions_cost_one_evaluation_each():
    with ProcessPoolExecutor(2) as pool:
        result = bq.integrate(raises, prior(), executor=pool, **SETTINGS)
    failed = result.evaluations["status"] == "failed"
    assert (failed == (result.evaluations["x"] > 1.0)).all() and set(result.failures) == {"exception"}


@pytest.mark.parametrize("given", ["a pool", "a function that makes one"])
def test_a_poisonous_point_costs_only_itself_although_it_breaks_the_pool(given):
    pool = ProcessPoolExecutor(2)
    executor = pool if given == "a pool" else lambda: ProcessPoolExecutor(2)
    result = bq.integrate(kills_itself, prior(), executor=executor, **SETTINGS)
    assert result.failures == {"lost-worker": 1}
    assert np.flatnonzero(result.evaluations["status"] == "failed").tolist() == [3]
    assert result.evaluations["attempts"].tolist() == [1, 1, 1, 3] + [1] * 44
    pool.shutdown()


def test_what_cannot_be_pickled_is_said_once_and_early():
    with ProcessPoolExecutor(2) as pool:
        result = bq.integrate(lambda theta: gaussian(theta), prior(), executor=pool, **SETTINGS)
    assert result.status == "failed" and "pickle" in result.reason.lower()
    assert result.evaluations.rows <= 16
