"""``n_jobs`` as everyone writes it."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ._errors import InvalidInput
from ._evaluate import ExecutorLike


def with_jobs(executor: ExecutorLike, n_jobs: Any, timeout: float | None) -> ExecutorLike:
    """The executor that ``n_jobs`` stands for: so many processes, ``-1`` for one per core, ``-2`` for all cores but one.

    >>> with_jobs(None, 4, None)
    4
    >>> with_jobs(None, 1, None) is None   # this thread
    True
    """
    if n_jobs is None:
        return executor
    if executor is not None:
        raise InvalidInput("n_jobs and executor are both given, expected one of them: executor=4 is n_jobs=4")
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
        raise InvalidInput(f"n_jobs is {n_jobs!r}, expected a number of processes, or -1 for one per core")
    if n_jobs < 0:
        n_jobs = max(1, cores() + 1 + int(n_jobs))
    # Nothing can end a function in this thread.
    return None if n_jobs == 1 and timeout is None else int(n_jobs)


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
