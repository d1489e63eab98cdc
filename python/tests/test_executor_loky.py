"""loky: processes to which lambdas can travel."""

import numpy as np
import pytest

import batchquad as bq
from problems import SETTINGS, kills_itself, prior, reference, slow_gaussian

loky = pytest.importorskip("loky")


@pytest.fixture
def pool():
    executor = loky.get_reusable_executor(max_workers=2)
    yield executor
    loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)


def test_two_processes_give_the_same_bits(pool):
    result = bq.integrate(lambda theta: slow_gaussian(theta), prior(), executor=pool, **SETTINGS)
    assert result.log_z == reference().log_z
    assert len(set(result.evaluations["worker"])) == 2


def test_a_poisonous_point_costs_only_itself_although_it_breaks_the_pool(pool):
    result = bq.integrate(kills_itself, prior(), executor=pool, **SETTINGS)
    assert result.failures == {"lost-worker": 1}
    assert np.flatnonzero(result.evaluations["status"] == "failed").tolist() == [3]
