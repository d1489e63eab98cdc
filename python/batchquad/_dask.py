"""Dask: worker loss is decided here, not by the scheduler, which would run the same evaluation three times more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def adopt(given: Any) -> tuple[Any, Callable[[], None]]:
    """An executor on a Dask client (or on that of an executor), and what undoes the change made to its scheduler."""
    client = given if hasattr(given, "get_executor") else given._client
    options = {**getattr(given, "_kwargs", {}), "pure": False, "retries": 0}
    executor = client.get_executor(**options)

    def allow(dask_scheduler: Any, n: int) -> int:
        before: int = dask_scheduler.allowed_failures
        dask_scheduler.allowed_failures = n
        return before

    # A function inside a function travels by value: the scheduler need not have this package.
    before = client.run_on_scheduler(allow, n=0)

    def restore() -> None:
        try:
            client.run_on_scheduler(allow, n=before)
        except Exception:  # the cluster may be gone by now, and its settings with it
            pass

    return executor, restore


def threads(executor: Any) -> int:
    """How many tasks the cluster runs at the same time, as it is now."""
    running: int = sum(executor._client.nthreads().values())
    return max(1, running)
