"""The sampler ``"batchquad"`` of bilby: ``bilby.run_sampler(likelihood, priors, sampler="batchquad", …)``.

bilby finds it by itself once both packages are installed; nothing else here needs bilby.
"""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from copy import copy
from typing import Any, ClassVar

import numpy as np
from bilby.core import prior as families
from bilby.core.sampler.base_sampler import IllegalSamplingSetError, NestedSampler, signal_wrapper
from bilby.core.utils import logger

from ._errors import Interrupted, InvalidInput, StoreError, StoreLocked
from ._integrate import integrate
from ._prior import (
    Beta,
    Cauchy,
    Distribution,
    Exponential,
    Gamma,
    HalfNormal,
    LogNormal,
    LogUniform,
    MultivariateNormal,
    Normal,
    StudentT,
    TruncatedNormal,
    Uniform,
    UnitCube,
)
from ._result import Result
from ._settings import FurtherSettings
from ._study import Study

__all__ = ["Batchquad", "as_batchquad"]

#: What bilby's likelihoods return where they mean −∞.
_LOWEST = float(np.nan_to_num(-np.inf))


#: How many draws are made for each that keeps the constraints.
_MOST_DRAWS = 64


class Batchquad(NestedSampler):  # type: ignore[misc]
    """Evidence and posterior of expensive likelihoods by batch Bayesian quadrature.

    The keyword arguments are those of `batchquad.integrate` (``batch``, ``max_evaluations``, ``target_sd``, ``seed``, ``executor``,
    ``schedule``, …), and two more: ``nsamples``, the number of posterior draws, and ``resume``. ``npool`` is a number of processes;
    ``executor`` is anything else, a Dask client for instance.

    Everything is kept in the store ``{outdir}/batchquad_{label}``, which the program `batchquad` opens too. The same call resumes it, a
    call with a larger ``max_evaluations`` goes on from it; with ``resume=False`` it is moved aside and the run begins anew.

    Where a constraint of the priors does not hold the likelihood is zero, as it is with bilby's other samplers of evidences. In the
    posterior, ``log_likelihood`` is NaN: draws come from the belief, and the likelihood was not evaluated at them.
    """

    use_ratio: bool | None
    cached_result: Any
    sampler_name = "batchquad"
    sampling_seed_key = "seed"
    default_kwargs: ClassVar = {
        **{
            name: parameter.default
            for name, parameter in inspect.signature(integrate).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY and name not in ("store", "vectorized", "pass_dict")
        },
        **dict.fromkeys(FurtherSettings.__annotations__),
        "nsamples": 5000,
        "resume": True,
    }

    @property
    def store(self) -> str:
        """The directory in which everything is kept."""
        return os.path.join(self.outdir, f"{self.sampler_name}_{self.label}")

    @signal_wrapper  # type: ignore[untyped-decorator]
    def run_sampler(self) -> Any:
        """Runs to the end and gives bilby's result."""
        return self._fill(self._integrate(self.store))

    def _run_test(self) -> Any:
        """bilby's test mode: a few evaluations, and nothing kept."""
        self.kwargs["max_evaluations"] = min(self.kwargs["max_evaluations"], 4 * self.ndim + 8)
        return self._fill(self._integrate(None))

    def _integrate(self, store: str | None) -> Result:
        prior = as_batchquad(self.priors, self._search_parameter_keys)
        settings = {key: value for key, value in self.kwargs.items() if value is not None or key in ("target_sd", "progress")}
        resume = settings.pop("resume")
        del settings["nsamples"]
        if store is not None:
            os.makedirs(self.outdir, exist_ok=True)
            if not resume:
                _set_aside(store, prior)
        if settings.get("executor") is None and self.npool is not None and self.npool > 1:
            settings["executor"] = self.npool
        function = LogLikelihood(self.likelihood, self.priors, self.parameters, self.use_ratio)
        try:
            return integrate(function, prior, store=store, pass_dict=True, **settings)
        except Interrupted as interrupted:
            logger.info(str(interrupted))
            sys.exit(self.exit_code)

    def _fill(self, found: Result) -> Any:
        order = [found.names.index(key) for key in self._search_parameter_keys]
        result, n = self.result, int(self.kwargs["nsamples"])
        result.log_evidence, result.log_evidence_err = found.log_z, found.log_z_sd
        result.samples = self._draws(found, n)[:, order]
        result.log_likelihood_evaluations = np.full(n, np.nan)
        result.num_likelihood_evaluations = int(np.sum(found.evaluations["status"] != "pending"))
        result.sampler_output = found
        result.sampler_kwargs = _storable(self.kwargs)
        result.meta_data = {**(result.meta_data or {}), "batchquad": _summary(found)}
        return result

    def _draws(self, found: Result, n: int) -> np.ndarray:
        """Draws that keep the constraints: the belief is smooth and leaks over their edges."""
        drawn = n
        while True:
            draws = found.samples(drawn, self.kwargs["seed"])
            if not self._constraint_parameter_keys:
                return draws
            theta = {name: draws[:, k] for k, name in enumerate(found.names)}
            kept: np.ndarray = draws[np.asarray(self.priors.evaluate_constraints(theta), dtype=bool)]
            if len(kept) >= n:
                return kept[:n]
            if drawn >= _MOST_DRAWS * n:
                raise InvalidInput(
                    f"the constraints hold for {len(kept)} of {drawn} posterior draws, expected {n}: are they too narrow?"
                )
            drawn *= 2

    # What bilby does before a run costs a hundred evaluations, which may be more than the run itself. What can be checked for nothing is.

    def _verify_parameters(self) -> None:
        if self.priors.test_has_redundant_keys():
            raise IllegalSamplingSetError("Your sampling set contains redundant parameters.")
        as_batchquad(self.priors, self._search_parameter_keys)

    def _time_likelihood(self, n_evaluations: int = 0) -> float:
        return float("nan")

    def _verify_use_ratio(self) -> None:
        if self.use_ratio is None:
            self.use_ratio = bool(np.isfinite(self.likelihood.noise_log_likelihood()))

    def _translate_kwargs(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        super()._translate_kwargs(kwargs)
        for name in self.npool_equiv_kwargs:
            if name in kwargs:
                self._npool = kwargs.pop(name)
        return kwargs

    def _verify_kwargs_against_default_kwargs(self) -> None:
        for key in self.kwargs:
            if key not in self.default_kwargs:
                near = difflib.get_close_matches(key, self.default_kwargs, 1)
                hint = f". Did you mean {near[0]!r}?" if near else f", expected some of {', '.join(sorted(self.default_kwargs))}"
                raise TypeError(f"sampler 'batchquad' got an unexpected keyword argument {key!r}{hint}")

    def _check_cached_result(self, result_class: Any = None) -> None:
        super()._check_cached_result(result_class)
        # With other settings the store has more to say than the file of the last result.
        if self.cached_result and self.cached_result.sampler_kwargs != _storable(self.kwargs):
            self.cached_result = None

    def write_current_state(self) -> None:
        """Every evaluation is on the disk already."""

    def write_current_state_and_exit(self, signum: int | None = None, frame: Any = None) -> None:
        """Ends the run as Ctrl-C does: what has finished is recorded, workers are ended, and the exit code is bilby's."""
        self._log_interruption(signum=signum)
        raise KeyboardInterrupt


class LogLikelihood:
    """A bilby likelihood as a function of the sampled parameters, which can travel to other processes."""

    def __init__(self, likelihood: Any, priors: Any, fixed: dict[str, float], use_ratio: bool | None) -> None:
        self._likelihood, self._fixed = likelihood, dict(fixed)
        self._name = "log_likelihood_ratio" if use_ratio else "log_likelihood"
        self._constraints = priors if any(isinstance(prior, families.Constraint) for prior in priors.values()) else None

    def __call__(self, theta: dict[str, float]) -> Any:
        if self._constraints is not None and not self._constraints.evaluate_constraints(dict(theta)):
            return -np.inf
        parameters = {**self._fixed, **theta}
        method = getattr(self._likelihood, self._name)
        if "parameters" in inspect.signature(method).parameters:
            value = method(parameters=parameters)
        else:
            # Parameters as attributes of the likelihood: a copy of its own for each call, or threads would share them.
            likelihood = copy(self._likelihood)
            likelihood.parameters = {**likelihood.parameters, **parameters}
            value = getattr(likelihood, self._name)()
        return -np.inf if isinstance(value, float) and value <= _LOWEST else value


def as_batchquad(priors: Any, names: list[str]) -> dict[Any, Any] | UnitCube:
    """The prior of batchquad that a ``PriorDict`` describes, for the parameters that are sampled.

    A family that the core has is translated exactly; any other goes through its ``rescale``, as a map from the unit cube. Fixed
    parameters and constraints do not belong to it.
    """
    if any(name in getattr(priors, "conditional_keys", []) for name in names):
        return UnitCube(lambda cube: [float(np.squeeze(value)) for value in priors.rescale(names, cube)], names)
    blocks: dict[Any, Any] = {}
    for name in names:
        prior = priors[name]
        if isinstance(prior, families.JointPrior):
            blocks.setdefault(tuple(prior.dist.names), _joint(name, prior.dist))
        else:
            blocks[name] = _translate(prior) or _through_rescale(name, prior)
    return blocks


def _translate(prior: Any) -> Distribution | None:
    # By the exact class: a class derived from one of these may have changed what it means.
    kind, p = type(prior), prior
    if kind is families.Uniform:
        return Uniform(p.minimum, p.maximum)
    if kind is families.LogUniform:
        return LogUniform(p.minimum, p.maximum)
    if kind in (families.Gaussian, families.Normal):
        return Normal(p.mu, p.sigma)
    if kind in (families.TruncatedGaussian, families.TruncatedNormal):
        return TruncatedNormal(p.mu, p.sigma, p.minimum, p.maximum)
    if kind in (families.HalfGaussian, families.HalfNormal):
        return HalfNormal(p.sigma)
    if kind in (families.LogNormal, families.LogGaussian):
        return LogNormal(p.mu, p.sigma)
    if kind is families.Exponential:
        return Exponential(1.0 / p.mu)
    if kind is families.StudentT:
        return StudentT(p.df, p.mu, p.scale)
    if kind in (families.Cauchy, families.Lorentzian):
        return Cauchy(p.alpha, p.beta)
    if kind in (families.Gamma, families.ChiSquared):
        return Gamma(p.k, 1.0 / p.theta)
    if kind is families.Beta and (p.minimum, p.maximum) == (0, 1):
        return Beta(p.alpha, p.beta)
    return None


def _through_rescale(name: str, prior: Any) -> UnitCube:
    if isinstance(prior, families.WeightedDiscreteValues):
        raise InvalidInput(f"prior of {name!r} is the discrete {type(prior).__name__}, expected a continuous one")
    return UnitCube(
        lambda cube: [float(np.squeeze(prior.rescale(cube[0])))],
        [name],
        inverse=lambda theta: [float(np.squeeze(prior.cdf(theta[0])))],
        log_density=lambda theta: float(prior.ln_prob(theta[0])),
    )


def _joint(name: str, dist: Any) -> MultivariateNormal | UnitCube:
    if isinstance(dist, families.MultivariateGaussianDist):
        bounded = any(np.isfinite(end) for bounds in dist.bounds.values() for end in bounds)
        if dist.nmodes != 1 or bounded:
            # bilby's own map from the unit cube is random for these, which would be another prior at every call.
            what = "has bounds" if bounded else f"has {dist.nmodes} modes"
            raise InvalidInput(f"the joint prior of {name!r} {what}, expected one mode without bounds")
        return MultivariateNormal(dist.mus[0], dist.covs[0])
    return UnitCube(lambda cube: np.ravel(dist.rescale(np.atleast_2d(cube))).tolist(), list(dist.names))


def _set_aside(store: str, prior: Any) -> None:
    """Moves a store out of the way. What it holds may have cost days, so it is never deleted."""
    if not os.path.exists(store):
        return
    try:
        Study(prior, store=store).close()
    except StoreLocked:
        raise
    except StoreError:  # another problem's, or damaged: in the way all the same
        pass
    k = 1
    while os.path.exists(f"{store}.{k}"):
        k += 1
    os.rename(store, f"{store}.{k}")
    logger.info(f"resume=False: the store of an earlier run is now {store}.{k}")


def _storable(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Settings as a file of results holds them: executors and functions by their description."""
    plain = (bool, int, float, str, dict, type(None))
    return {key: value if isinstance(value, plain) else f"<{type(value).__name__}>" for key, value in kwargs.items()}


def _summary(found: Result) -> dict[str, Any]:
    """What bilby's result has no place for."""
    evaluations = {name: column.tolist() for name, column in found.evaluations.items()}
    verdict = found.diagnosis.verdict if found.diagnosis is not None else None
    reason = found.diagnosis.summary if found.diagnosis is not None else None
    return {
        "status": found.status,
        "reason": found.reason,
        "verdict": verdict,
        "verdict_reason": reason,
        "store": found.store,
        "evaluations": evaluations,
    }
