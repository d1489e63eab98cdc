"""What a Python callable may return, and what becomes of everything else."""

import decimal
import fractions
import math

import numpy as np
import pytest

import batchquad as bq
from problems import SETTINGS, TOLERANCE, TRUTH, gaussian, prior, reference

TAKEN = {
    "a float": float,
    "an int at some points": lambda v: int(v) if v == int(v) else v,
    "numpy.float64": np.float64,
    "an array without dimensions": np.asarray,
    "an array of one": lambda v: np.array([v]),
    "an array of one by one": lambda v: np.array([[v]]),
    "Decimal": decimal.Decimal,
    "Fraction": fractions.Fraction,
    "a masked array with nothing masked": np.ma.array,
}


@pytest.mark.parametrize("convert", TAKEN.values(), ids=TAKEN)
def test_real_numbers_of_every_kind_are_the_same_number(convert):
    result = bq.integrate(lambda theta: convert(gaussian(theta)), prior(), **SETTINGS)
    assert not result.failures
    assert result.log_z == reference().log_z


def test_float32_is_taken_with_the_digits_it_has():
    result = bq.integrate(lambda theta: np.float32(gaussian(theta)), prior(), **SETTINGS)
    assert not result.failures
    # Values are rounded to 6e-8 of themselves, the estimate accordingly.
    assert abs(result.log_z - reference().log_z) < 1e-4


REFUSED = {
    "None": (lambda v: None, "None"),
    "text": (lambda v: "abc", "'abc'"),
    "a number as text": (lambda v: str(v), "str"),
    "complex": (lambda v: complex(v), "complex"),
    "complex without imaginary part": (lambda v: np.complex128(v), "complex"),
    "bool": (lambda v: True, "True"),
    "numpy.bool": (lambda v: np.bool_(True), "True"),
    "an array of two": (lambda v: np.array([v, v]), "array"),
    "an empty array": (lambda v: np.array([]), "array"),
    "a list": (lambda v: [v], "list"),
    "a tuple of four": (lambda v: (v, 1, 2, 3), "tuple"),
    "a dict": (lambda v: {"log_likelihood": v}, "dict"),
    "a masked value": (lambda v: np.ma.masked, "masked"),
    "an int beyond every float": (lambda v: 10**400, "int"),
    "the class of numbers": (lambda v: float, "float"),
}


@pytest.mark.parametrize("convert, named", REFUSED.values(), ids=REFUSED)
def test_what_is_no_number_is_a_failure_that_names_it(convert, named):
    def sometimes(theta):
        value = gaussian(theta)
        return convert(value) if theta[0] > 1.5 else value

    result = bq.integrate(sometimes, prior(), **SETTINGS)
    failed = result.evaluations["status"] == "failed"
    assert failed.any() and (failed == (result.evaluations["x"] > 1.5)).all()
    assert set(result.evaluations["kind"][failed]) == {"parse"}
    assert all(named in message and "expected a real number" in message for message in result.evaluations["message"][failed])
    assert result.prior_mass_near_failures > 0


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float32("nan"), decimal.Decimal("NaN")])
def test_nan_and_plus_infinity_are_failures_that_name_the_point(value):
    result = bq.integrate(lambda theta: value if theta[0] > 1.5 else gaussian(theta), prior(), **SETTINGS)
    failed = result.evaluations["status"] == "failed"
    assert failed.any() and set(result.evaluations["kind"][failed]) == {"nan"}
    first = np.flatnonzero(failed)[0]
    assert repr(float(result.evaluations["x"][first])) in result.evaluations["message"][first]


def test_minus_infinity_is_a_value():
    # Half of a smooth bump: by symmetry of prior and bump about y = 0, the truth is the whole less log 2.
    def half(theta):
        return -math.inf if theta[1] > 0 else gaussian(theta)

    truth = TRUTH - math.log(2)
    result = bq.integrate(half, prior(), max_evaluations=128, surrogate="wsabi-l")
    assert not result.failures
    assert np.isneginf(result.evaluations["log_likelihood"]).any()
    # A jump is not in the model: at 128 evaluations the error is some hundredths.
    assert abs(result.log_z - truth) < 0.1
    # The belief about the logarithm knows less about the edge, and says so.
    result = bq.integrate(half, prior(), max_evaluations=128)
    assert abs(result.log_z - truth) < 2 * result.log_z_sd < 2.0


def test_one_raised_exception_costs_one_point():
    def once(theta):
        if theta[0] == bad:
            raise RuntimeError("the simulator diverged\x1b[2J")
        return gaussian(theta)

    bad = bq.Study(prior(), **SETTINGS).ask(3)[2].theta[0]
    result = bq.integrate(once, prior(), **SETTINGS)
    assert result.failures == {"exception": 1}
    message = result.evaluations["message"][2]
    assert message.startswith("RuntimeError: the simulator diverged[2J (test_values.py:")
    assert abs(result.log_z - TRUTH) < 10 * TOLERANCE


def test_whatever_the_function_does_to_its_argument_is_its_own_affair():
    def mutates(theta):
        value = gaussian(theta)
        theta[:] = 1e9
        return value

    result = bq.integrate(mutates, prior(), **SETTINGS)
    assert result.log_z == reference().log_z
    assert np.abs(result.evaluations["x"]).max() < 10

    def mutates_dict(parameters):
        value = gaussian([parameters.pop("x"), parameters.pop("y")])
        return value

    assert bq.integrate(mutates_dict, prior(), pass_dict=True, **SETTINGS).log_z == reference().log_z


def test_printing_is_harmless(capsys):
    def prints(theta):
        print("hello from the likelihood")
        return gaussian(theta)

    assert bq.integrate(prints, prior(), **SETTINGS).log_z == reference().log_z
    assert capsys.readouterr().out.count("hello") == 48


def test_blobs_are_kept_beside_values(tmp_path):
    def with_blob(theta):
        return gaussian(theta), {"twice": 2 * theta, "note": "</script>"}

    result = bq.integrate(with_blob, prior(), store=tmp_path / "store", **SETTINGS)
    assert result.log_z == reference().log_z
    assert len(result.blobs) == 48
    assert result.blobs[7]["twice"][0] == 2 * result.evaluations["x"][7]
    # From the store they come back as JSON has them.
    with bq.Study.open(tmp_path / "store") as study:
        again = study.result().blobs
    assert again[7] == {"twice": result.blobs[7]["twice"].tolist(), "note": "</script>"}


def test_blobs_that_json_cannot_hold_stay_in_memory(tmp_path):
    result = bq.integrate(lambda theta: (gaussian(theta), object()), prior(), store=tmp_path / "store", **SETTINGS)
    assert len(result.blobs) == 48
    with bq.Study.open(tmp_path / "store") as study:
        assert study.result().blobs == {}


def test_all_failing_ends_early_without_a_number():
    calls = []

    def fails(theta):
        calls.append(theta)
        raise ValueError("wrong from the start")

    result = bq.integrate(fails, prior(), max_evaluations=1000)
    assert result.status == "failed" and "wrong from the start" in result.reason
    assert len(calls) <= 20
    with pytest.raises(bq.NoEvidence, match="wrong from the start"):
        result.log_z
    with pytest.raises(bq.NoEvidence):
        result.samples(10)
    assert "none" in repr(result) and not result.has_evidence


def test_likelihood_zero_everywhere_has_no_evidence():
    result = bq.integrate(lambda theta: -math.inf, prior(), max_evaluations=24)
    assert result.status == "failed" and not result.has_evidence
    with pytest.raises(bq.NoEvidence, match="-inf"):
        result.log_z


@pytest.mark.parametrize("offset", [1e6, -1e6])
def test_offsets_are_exact_bookkeeping(offset):
    result = bq.integrate(lambda theta: gaussian(theta) + offset, prior(), **SETTINGS)
    # Adding 1e6 rounds values to 1e-10; weights of 1e5 carry that to 1e-5.
    assert abs(result.log_z - offset - reference().log_z) < 1e-4


@pytest.mark.parametrize("unit", [1e12, 1e-12])
def test_units_do_not_matter(unit):
    scaled = {"x": bq.Normal(0, unit), "y": bq.Normal(0, unit)}
    result = bq.integrate(lambda theta: gaussian(theta / unit), scaled, **SETTINGS)
    assert abs(result.log_z - reference().log_z) < 1e-6


def test_failures_as_zero_and_abort():
    def fails(theta):
        if theta[0] > 1.0:
            raise ValueError("no")
        return gaussian(theta)

    assert bq.integrate(fails, prior(), on_failure="as-zero", **SETTINGS).prior_mass_near_failures is None
    aborted = bq.integrate(fails, prior(), on_failure="abort", **SETTINGS)
    assert aborted.status == "failed" and "ValueError: no" in aborted.reason
    assert len(aborted.evaluations["id"]) <= 16
