"""bilby: the sampler that it finds by itself, its priors, its stores, its way to be interrupted."""

import logging
import os
import pathlib
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import batchquad as bq
from batchquad._prior import as_prior
from problems import TOLERANCE, TRUTH, gaussian, reference

bilby = pytest.importorskip("bilby")
scipy_stats = pytest.importorskip("scipy.stats")

from batchquad.bilby import as_batchquad  # noqa: E402  (after bilby is known to be there)

priors = bilby.core.prior


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    # It asks pip for the list of all packages at every run, which takes a second and is nothing of ours.
    monkeypatch.setattr(bilby.core.sampler, "env_package_list", lambda **options: "not listed")
    # It reads the command line of whatever program it runs in, and takes pytest's -c for its own --clean.
    monkeypatch.setattr(bilby.core.utils.command_line_args, "clean", False)
    logger = logging.getLogger("bilby")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


class Gaussian(bilby.Likelihood):
    """The problem of all other tests, which counts its calls."""

    def __init__(self, noise=np.nan):
        super().__init__()
        self.calls, self.noise = 0, noise

    def log_likelihood(self, parameters=None):
        self.calls += 1
        return gaussian([parameters["x"], parameters["y"]])

    def noise_log_likelihood(self):
        return self.noise


def normal_priors(**further):
    return priors.PriorDict({"x": priors.Gaussian(0, 1), "y": priors.Normal(0, 1), **further})


def run(outdir, likelihood=None, given=None, **options):
    options = {"label": "run", "max_evaluations": 48, **options}
    return bilby.run_sampler(
        likelihood or Gaussian(), given or normal_priors(), sampler="batchquad", outdir=str(outdir), **options
    )


def test_bilby_finds_the_sampler():
    assert "batchquad" in bilby.core.sampler.get_implemented_samplers()


def test_a_known_evidence_and_no_evaluation_beside_the_run(tmp_path):
    likelihood = Gaussian()
    result = run(tmp_path, likelihood, normal_priors(unused=3.0), nsamples=2000)
    assert abs(result.log_evidence - TRUTH) < TOLERANCE and 0 < result.log_evidence_err < TOLERANCE
    assert result.log_evidence == reference().log_z
    assert likelihood.calls == result.num_likelihood_evaluations == 48
    posterior = result.posterior
    assert len(posterior) == 2000 and (posterior["unused"] == 3.0).all() and posterior["log_likelihood"].isna().all()
    # The posterior is normal with means 0.8 and 0 and variance 0.2; the standard error of 2000 draws is 0.01, five of those are allowed.
    assert np.allclose(posterior[["x", "y"]].mean(), [0.8, 0.0], atol=0.05)
    assert np.allclose(posterior[["x", "y"]].std(), np.sqrt(0.2), atol=0.04)
    assert result.meta_data["batchquad"]["status"] == "budget"
    assert result.meta_data["batchquad"]["verdict"] in ("fine", "look", "do-not-trust")


def test_the_saved_result_can_be_read_again(tmp_path):
    result = run(tmp_path)
    again = bilby.read_in_result(outdir=str(tmp_path), label="run")
    assert again.log_evidence == result.log_evidence
    assert (
        again.meta_data["batchquad"]["evaluations"]["log_likelihood"]
        == result.meta_data["batchquad"]["evaluations"]["log_likelihood"]
    )


def test_the_store_is_everybodys(tmp_path, cli):
    result = run(tmp_path)
    store = tmp_path / "batchquad_run"
    assert bq.Study.open(store).result().log_z == result.log_evidence
    assert "48" in cli("status", store)


def test_the_same_call_is_answered_from_the_file_and_a_larger_budget_from_the_store(tmp_path):
    likelihood = Gaussian()
    run(tmp_path, likelihood, max_evaluations=24)
    assert likelihood.calls == 24
    run(tmp_path, likelihood, max_evaluations=24)
    assert likelihood.calls == 24
    assert abs(run(tmp_path, likelihood).log_evidence - TRUTH) < TOLERANCE
    assert likelihood.calls == 48


def test_beginning_anew_keeps_what_was_there(tmp_path):
    likelihood = Gaussian()
    run(tmp_path, likelihood)
    (tmp_path / "run_result.json").unlink()
    run(tmp_path, likelihood, resume=False)
    assert likelihood.calls == 96
    assert bq.Study.open(tmp_path / "batchquad_run.1").result().log_z == reference().log_z


@pytest.mark.parametrize("options", [{"npool": 2}, {"nthreads": 2}, {"executor": 2}], ids=str)
def test_processes(tmp_path, options):
    likelihood = Gaussian()
    result = run(tmp_path, likelihood, **options)
    workers = set(result.meta_data["batchquad"]["evaluations"]["worker"])
    assert result.log_evidence == reference().log_z and likelihood.calls == 0 and len(workers) == 2


def test_any_executor_and_likelihoods_that_keep_their_parameters(tmp_path):
    with warnings.catch_warnings():
        # bilby warns of them, in three places.
        warnings.simplefilter("ignore")

        class Old(bilby.Likelihood):
            def log_likelihood(self):
                x = self.parameters["x"]
                time.sleep(0.002)
                return gaussian([x, self.parameters["y"]])

            def log_likelihood_ratio(self):
                return np.nan

        with ThreadPoolExecutor(4) as pool:
            result = run(tmp_path, Old({"x": None, "y": None}), executor=pool)
    assert result.log_evidence == reference().log_z


def test_unknown_arguments_are_errors(tmp_path):
    with pytest.raises(TypeError, match=r"'max_evaluation'\. Did you mean 'max_evaluations'\?"):
        run(tmp_path, max_evaluation=3)
    with pytest.raises(TypeError, match=r"'dlogz', expected some of .*target_sd"):
        run(tmp_path, dlogz=0.1)
    with pytest.raises(bq.InvalidInput, match="batch"):
        run(tmp_path, batch=0)


def test_the_seed_has_all_of_bilbys_names(tmp_path):
    one = run(tmp_path, label="one", sampling_seed=5)
    two = run(tmp_path, label="two", seed=5)
    assert one.log_evidence == two.log_evidence != reference().log_z


def test_a_likelihood_ratio(tmp_path):
    result = run(tmp_path, Gaussian(noise=-7.0))
    assert result.use_ratio
    assert abs(result.log_bayes_factor - (TRUTH + 7.0)) < TOLERANCE
    assert abs(result.log_evidence - TRUTH) < TOLERANCE


def test_failures_cost_one_evaluation_each(tmp_path):
    class Failing(Gaussian):
        def log_likelihood(self, parameters=None):
            if parameters["x"] < -1.0:
                raise ValueError("x is too small")
            return super().log_likelihood(parameters)

    found = run(tmp_path, Failing()).sampler_output
    assert set(found.failures) == {"exception"}
    assert ((found.evaluations["status"] == "failed") == (found.evaluations["x"] < -1.0)).all()


def test_no_evidence_without_a_finite_value(tmp_path):
    class Nowhere(Gaussian):
        def log_likelihood(self, parameters=None):
            return np.nan_to_num(-np.inf)

    with pytest.raises(bq.NoEvidence):
        run(tmp_path, Nowhere())


def test_constraints(tmp_path):
    def convert(sample):
        return {**sample, "difference": sample["x"] - sample["y"]}

    class Round(Gaussian):
        def log_likelihood(self, parameters=None):
            assert parameters["x"] > parameters["y"]
            return -(parameters["x"] ** 2) - parameters["y"] ** 2

    given = priors.PriorDict(
        {"x": priors.Gaussian(0, 1), "y": priors.Gaussian(0, 1), "difference": priors.Constraint(0, np.inf)},
        conversion_function=convert,
    )
    result = run(tmp_path, Round(), given, max_evaluations=128)
    assert not result.sampler_output.failures
    # ∫ exp(−x² − y²) against the prior is 1/3; the plane through its middle leaves half, log Z = −1.79. A jump is not in the model: the
    # error is about 0.1. Taken as part of the prior, the constraint would give −1.10, which this tells apart.
    assert abs(result.log_evidence - np.log(1 / 6)) < 0.25
    assert len(result.posterior) == 5000 and (result.posterior["x"] > result.posterior["y"]).all()


KINDS = {
    "Uniform": (priors.Uniform(-3, 5), "uniform"),
    "LogUniform": (priors.LogUniform(1e-3, 10), "log-uniform"),
    "Gaussian": (priors.Gaussian(1, 2), "normal"),
    "TruncatedGaussian": (priors.TruncatedGaussian(1, 2, 0, 4), "truncated-normal"),
    "HalfGaussian": (priors.HalfGaussian(2), "half-normal"),
    "LogNormal": (priors.LogNormal(0.5, 0.7), "log-normal"),
    "Exponential": (priors.Exponential(3), "exponential"),
    "StudentT": (priors.StudentT(4, 1, 2), "student-t"),
    "Cauchy": (priors.Cauchy(1, 2), "cauchy"),
    "Gamma": (priors.Gamma(2, 3), "gamma"),
    "ChiSquared": (priors.ChiSquared(5), "gamma"),
    "Beta": (priors.Beta(2, 5), "beta"),
    "Beta, moved": (priors.Beta(2, 5, -1, 3), None),
    "PowerLaw": (priors.PowerLaw(2, 1, 4), None),
    "Sine": (priors.Sine(), None),
    "Cosine": (priors.Cosine(), None),
    "Triangular": (priors.Triangular(1, 0, 3), None),
    "Logistic": (priors.Logistic(1, 2), None),
}


@pytest.mark.parametrize(("prior", "family"), KINDS.values(), ids=KINDS)
def test_priors_mean_the_same(prior, family):
    given = as_batchquad(priors.PriorDict({"x": prior}), ["x"])
    assert getattr(given["x"], "family", None) == family
    ours = as_prior(given)
    assert ours.is_portable == (family is not None)
    latent = np.linspace(-3, 3, 13)
    cube = scipy_stats.norm.cdf(latent)
    theta = np.ravel([ours.to_theta(np.array([[u]])) for u in latent])
    # bilby's own quantiles are good to about 1e-9 (Gamma and the like, by iteration).
    assert np.allclose(theta, [np.squeeze(prior.rescale(u)) for u in cube], rtol=1e-8, atol=1e-9)


def test_joint_normal_priors(tmp_path):
    mean, cov = [0.5, -0.3], [[1.0, 0.6], [0.6, 2.0]]
    dist = priors.MultivariateGaussianDist(["b", "a"], mus=[mean], covs=[cov])
    given = priors.PriorDict(
        {"a": priors.MultivariateGaussian(dist, "a"), "c": priors.Uniform(-4, 4), "b": priors.MultivariateGaussian(dist, "b")}
    )

    class Three(Gaussian):
        def log_likelihood(self, parameters=None):
            return -0.5 * sum((parameters[name] - centre) ** 2 for name, centre in [("a", 1.0), ("b", 0.0), ("c", 1.0)])

    result = run(tmp_path, Three(), given, max_evaluations=96)
    joint = scipy_stats.multivariate_normal([0.0, 1.0], np.array(cov) + np.eye(2)).logpdf(mean) + np.log(2 * np.pi)
    truth = joint + np.log(np.sqrt(2 * np.pi) * (scipy_stats.norm.cdf(3) - scipy_stats.norm.cdf(-5)) / 8)
    assert abs(result.log_evidence - truth) < max(4 * result.log_evidence_err, 0.01)
    assert result.search_parameter_keys == ["a", "c", "b"]
    shrink = np.array(cov) @ np.linalg.inv(np.array(cov) + np.eye(2))
    b, a = np.array(mean) + shrink @ (np.array([0.0, 1.0]) - mean)
    # Posterior sds are below one, so five standard errors of 5000 draws are below 0.07.
    assert np.allclose(result.posterior[["a", "b"]].mean(), [a, b], atol=0.07)


def test_conditional_priors():
    def narrower(reference_params, x):
        return {"minimum": 0.0, "maximum": x}

    given = priors.ConditionalPriorDict(
        {"x": priors.Uniform(1, 2), "y": priors.ConditionalUniform(narrower, minimum=0, maximum=2)}
    )
    ours = as_prior(as_batchquad(given, ["y", "x"]))
    latent = np.array([[0.3, -1.2]])
    u, v = scipy_stats.norm.cdf(latent[0])
    x = 1 + v
    assert np.allclose(ours.to_theta(latent), [[u * x, x]], rtol=1e-12)


def test_priors_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(bq.InvalidInput, match="prior of 'y' is the discrete DiscreteValues"):
        run(tmp_path, given=priors.PriorDict({"x": priors.Gaussian(0, 1), "y": priors.DiscreteValues([1, 2])}))
    dist = priors.MultivariateGaussianDist(["x", "y"], nmodes=2, mus=[[0, 0], [1, 1]], covs=[np.eye(2), np.eye(2)])
    given = priors.PriorDict({name: priors.MultivariateGaussian(dist, name) for name in "xy"})
    with pytest.raises(bq.InvalidInput, match="has 2 modes, expected one"):
        run(tmp_path, given=given)


SLOW = """
import sys, time, bilby
class Slow(bilby.Likelihood):
    def log_likelihood(self, parameters=None):
        time.sleep(0.1)
        print("evaluated", flush=True)
        return -2 * ((parameters["x"] - 1) ** 2 + parameters["y"] ** 2)
priors = {name: bilby.core.prior.Gaussian(0, 1, name) for name in "xy"}
bilby.run_sampler(Slow(), priors, sampler="batchquad", outdir=sys.argv[1], label="run", max_evaluations=48, npool=int(sys.argv[2]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("number", "npool"), [(signal.SIGTERM, 2), (signal.SIGINT, 1)], ids=str)
def test_interrupted_with_bilbys_exit_code_and_resumable(tmp_path, number, npool):
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    process = subprocess.Popen(
        [sys.executable, script, tmp_path, str(npool)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    for _ in range(5):
        assert process.stdout.readline() == "evaluated\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    with bq.Study.open(pathlib.Path(tmp_path) / "batchquad_run") as study:
        done = np.sum(study.result().evaluations["status"] == "value")
    assert 4 <= done < 48
    likelihood = Gaussian()
    assert run(tmp_path, likelihood).log_evidence == reference().log_z
    assert likelihood.calls == 48 - done
