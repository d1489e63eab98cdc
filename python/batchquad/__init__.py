"""Model evidences (log Z), with an error bar, from expensive likelihoods, a batch of parallel evaluations at a time.

`integrate` is the whole of it in one call; `Study` is the same step by step; `compare` puts models side by side.
"""

import logging

from ._batchquad import Marginal, Prior, __version__
from ._compare import Comparison, compare
from ._diagnosis import Diagnosis
from ._errors import (
    Error,
    ExecutorError,
    Interrupted,
    InvalidInput,
    NoEvidence,
    NumericalError,
    StoreDamaged,
    StoreDiffers,
    StoreError,
    StoreLocked,
)
from ._expectation import Expectation
from ._integrate import integrate
from ._prior import (
    Beta,
    Cauchy,
    Distribution,
    Exponential,
    Gamma,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    LogNormal,
    LogUniform,
    MultivariateNormal,
    Normal,
    StudentT,
    TruncatedNormal,
    Uniform,
    UnitCube,
)
from ._progress import Progress
from ._result import Result
from ._study import Estimate, Job, Study
from ._table import Table

__all__ = [
    "Beta",
    "Cauchy",
    "Comparison",
    "Diagnosis",
    "Distribution",
    "Error",
    "Estimate",
    "ExecutorError",
    "Expectation",
    "Exponential",
    "Gamma",
    "HalfCauchy",
    "HalfNormal",
    "Interrupted",
    "InvalidInput",
    "InverseGamma",
    "Job",
    "LogNormal",
    "LogUniform",
    "Marginal",
    "MultivariateNormal",
    "NoEvidence",
    "Normal",
    "NumericalError",
    "Prior",
    "Progress",
    "Result",
    "StoreDamaged",
    "StoreDiffers",
    "StoreError",
    "StoreLocked",
    "StudentT",
    "Study",
    "Table",
    "TruncatedNormal",
    "Uniform",
    "UnitCube",
    "__version__",
    "compare",
    "integrate",
]

# Who wants to read what runs say configures logging; nobody else is bothered.
logging.getLogger("batchquad").addHandler(logging.NullHandler())
