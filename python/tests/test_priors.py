"""Priors, against scipy."""

import math

import numpy as np
import pytest
import scipy.stats as st

import batchquad as bq
from batchquad._prior import as_prior

LATENT = np.linspace(-5, 5, 21)[:, None]

FAMILIES = {
    "normal": (bq.Normal(1, 2), st.norm(1, 2)),
    "log-normal": (bq.LogNormal(0.5, 0.7), st.lognorm(0.7, scale=math.exp(0.5))),
    "uniform": (bq.Uniform(-1, 3), st.uniform(-1, 4)),
    "log-uniform": (bq.LogUniform(0.1, 10), st.loguniform(0.1, 10)),
    "beta": (bq.Beta(2, 5), st.beta(2, 5)),
    "gamma": (bq.Gamma(2, 0.5), st.gamma(2, scale=2)),
    "chi2": (bq.Gamma(1.5, 0.5), st.chi2(3)),
    "inverse-gamma": (bq.InverseGamma(3, 2), st.invgamma(3, scale=2)),
    "exponential": (bq.Exponential(0.1), st.expon(scale=10)),
    "half-normal": (bq.HalfNormal(2), st.halfnorm(scale=2)),
    "cauchy": (bq.Cauchy(1, 2), st.cauchy(1, 2)),
    "half-cauchy": (bq.HalfCauchy(2), st.halfcauchy(scale=2)),
    "student-t": (bq.StudentT(4, 1, 2), st.t(4, 1, 2)),
    "truncated-normal": (bq.TruncatedNormal(1, 2, 0, 3), st.truncnorm(-0.5, 1, 1, 2)),
}


@pytest.mark.parametrize("ours, theirs", FAMILIES.values(), ids=FAMILIES)
def test_families_are_scipys_and_translated_exactly(ours, theirs):
    prior = as_prior({"x": ours})
    theta = prior.to_theta(LATENT)[:, 0]
    # scipy's own quantiles in the tails are good to some 1e-9; θ = 0 comes out as rounding of its location.
    np.testing.assert_allclose(theta, theirs.ppf(st.norm.cdf(LATENT[:, 0])), rtol=1e-7, atol=1e-14)
    np.testing.assert_allclose(prior.log_density(theta[:, None]), theirs.logpdf(theta), rtol=1e-7, atol=1e-9)
    translated = as_prior({"x": theirs})
    assert translated.is_portable
    np.testing.assert_allclose(translated.to_theta(LATENT)[:, 0], theta, rtol=1e-14)


@pytest.mark.parametrize(
    "theirs", [st.weibull_min(1.5), st.gamma(2, loc=1), st.beta(2, 3, scale=2), st.gumbel_r(1, 2)], ids=lambda d: d.dist.name
)
def test_other_distributions_go_through_their_quantile_function(theirs):
    prior = as_prior({"x": theirs})
    assert not prior.is_portable
    theta = prior.to_theta(LATENT)
    np.testing.assert_allclose(theta[:, 0], theirs.ppf(st.norm.cdf(LATENT[:, 0])), rtol=1e-12)
    np.testing.assert_allclose(prior.to_latent(theta), LATENT, atol=1e-6)
    np.testing.assert_allclose(prior.log_density(theta), theirs.logpdf(theta[:, 0]), rtol=1e-12)


def test_new_distributions_of_scipy():
    if not hasattr(st, "Normal"):
        pytest.skip("this release has none")
    prior = as_prior({"x": st.Normal(mu=1.0, sigma=2.0)})
    np.testing.assert_allclose(prior.to_theta(LATENT)[:, 0], 1 + 2 * LATENT[:, 0], rtol=1e-9, atol=1e-14)


def test_joint_normals_and_their_names():
    mean, cov = [1.0, 2.0], [[1.0, 0.5], [0.5, 2.0]]
    assert as_prior(bq.MultivariateNormal(mean, cov)).names == ["x0", "x1"]
    assert as_prior(bq.MultivariateNormal(mean, cov, names=["a", "b"])).names == ["a", "b"]
    assert as_prior({"v": bq.MultivariateNormal(mean, cov)}).names == ["v[0]", "v[1]"]
    prior = as_prior({("a", "b"): st.multivariate_normal(mean, cov), "c": (0, 1)})
    assert prior.names == ["a", "b", "c"] and prior.is_portable
    theta = np.array([[0.3, 1.7, 0.5]])
    assert abs(prior.log_density(theta)[0] - st.multivariate_normal(mean, cov).logpdf(theta[0, :2])) < 1e-12


def test_unit_cubes():
    def transform(cube):
        cube[0] = 10 * cube[0] - 5  # in place, as some users do
        cube[1] = cube[0] + cube[1]
        return cube

    for prior in [bq.UnitCube(transform, 2), (transform, 2)]:
        assert as_prior(prior).names == ["x0", "x1"]
        assert as_prior(prior).to_theta(np.zeros((1, 2))).tolist() == [[0.0, 0.5]]
    # The evidence of exp(−½x²) under U(−5, 5), as with the named family: θ agrees to rounding (1e-15), which a kernel matrix with a
    # condition of 1e10 may carry to 1e-5.
    named = bq.integrate(lambda t: -0.5 * t[0] ** 2, {"x": (-5, 5)}, max_evaluations=24)
    cube = bq.integrate(lambda t: -0.5 * t[0] ** 2, bq.UnitCube(lambda v: 10 * v - 5, ["x"]), max_evaluations=24)
    assert abs(named.log_z - cube.log_z) < 1e-5
    assert abs(cube.samples(2000).mean()) < 0.1


def test_what_a_transform_raises_is_raised():
    class Odd(Exception):
        pass

    def broken(cube):
        raise Odd("in the transform")

    with pytest.raises(Odd, match="in the transform"):
        bq.integrate(lambda t: 0.0, bq.UnitCube(broken, 2))
    later = []

    def breaks_later(cube):
        later.append(cube)
        if len(later) > 20:
            raise Odd("later")
        return cube

    with pytest.raises(Odd, match="later"):
        bq.integrate(lambda t: 0.0, bq.UnitCube(breaks_later, 2))
    for returned, message in [
        (None, "returned None, expected 2 numbers"),
        ([1.0], "expected 2"),
        ("ab", "expected 2 numbers"),
        ([0.0, math.nan], "finite"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            as_prior(bq.UnitCube(lambda cube, returned=returned: returned, 2))


def test_imports_need_the_inverse_of_a_transform():
    cube = bq.UnitCube(lambda v: 10 * v - 5, ["x"])
    with pytest.raises(ValueError, match="inverse of the unit-cube map"):
        bq.integrate(lambda t: 0.0, cube, initial=([[0.0]], [0.0]))
    both = bq.UnitCube(lambda v: 10 * v - 5, ["x"], inverse=lambda t: (t + 5) / 10)
    assert bq.integrate(lambda t: -(t[0] ** 2), both, initial=([[0.0]], [0.0]), max_evaluations=16).imported.rows == 1


REFUSED = [
    (lambda: bq.Normal(0, -1), r"sd.* is -1.0, expected"),
    (lambda: bq.Normal(math.nan, 1), "mean.* is NaN, expected"),
    (lambda: bq.Normal("a", 1), "mean of Normal is 'a', expected a number"),
    (lambda: bq.Uniform(1, 1), "expected"),
    (lambda: bq.LogUniform(0, 1), "expected"),
    (lambda: bq.Gamma(0, 1), "expected"),
    (lambda: bq.TruncatedNormal(0, 1, 2, 1), "expected"),
    (lambda: as_prior({"x": (1, 0)}), "expected"),
    (lambda: as_prior({}), "list of parameters"),
    (lambda: as_prior({"x; touch pwned": (0, 1)}), 'name of parameter 0 is "x; touch pwned", expected a name'),
    (lambda: as_prior({"</script>": (0, 1)}), "expected a name"),
    (lambda: as_prior({"\x1b[2J": (0, 1)}), "expected a name"),
    (lambda: as_prior({1: (0, 1)}), "name of a parameter is 1, expected text"),
    (lambda: as_prior({("a", "a"): bq.MultivariateNormal([0, 0], np.eye(2))}), "a name not used before"),
    (lambda: as_prior({"x": "normal"}), "prior of 'x' is 'normal', expected a distribution"),
    (lambda: as_prior({"x": st.poisson(3)}), "discrete"),
    (lambda: as_prior({"x": st.norm([0, 1], 1)}), "array of distributions"),
    (lambda: as_prior(3), "prior is 3, expected a dict"),
    (lambda: as_prior(lambda v: v), "UnitCube"),
    (lambda: bq.UnitCube(lambda v: v, 0), "parameters of UnitCube is 0"),
    (lambda: bq.UnitCube(3, 2), "transform of UnitCube is 3, expected a function"),
    (lambda: as_prior({"x": (0, 1), "y": bq.UnitCube(lambda v: v, ["x"])}), None),
    (lambda: bq.MultivariateNormal([0, 0], [[1]]), r"shape \(1, 1\), expected \(2, 2\)"),
    (lambda: as_prior(bq.MultivariateNormal([0, 0], [[1, 2], [2, 1]])), "not positive definite"),
    (lambda: as_prior(bq.MultivariateNormal([0, 0], np.eye(2), names=["a"])), "has length 1, expected 2"),
]


@pytest.mark.parametrize("make, message", REFUSED)
def test_what_is_no_prior_is_refused_by_name(make, message):
    if message is None:
        assert make().names == ["x", "y[0]"]
        return
    with pytest.raises(ValueError, match=message):
        make()
