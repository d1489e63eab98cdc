"""The body of test_executor_mpi: run by mpiexec, prints log Z and how many ranks evaluated."""

from mpi4py.futures import MPIPoolExecutor

import batchquad as bq
from problems import SETTINGS, gaussian, prior, raises, slow_gaussian

if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        result = bq.integrate(slow_gaussian, prior(), executor=pool, **SETTINGS)
        later = bq.integrate(slow_gaussian, prior(), executor=pool, schedule="async", **SETTINGS)
        failing = bq.integrate(raises, prior(), executor=pool, **SETTINGS)
        assert abs(later.log_z - result.log_z) < 0.01
        assert set(failing.failures) == {"exception"}
        print(
            "result",
            repr(result.log_z),
            len(set(result.evaluations["worker"])),
            bq.integrate(gaussian, prior(), **SETTINGS).log_z,
        )
