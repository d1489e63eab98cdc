"""Who evaluates: this thread, or somebody else.

An evaluator is given jobs and hands back what came of them, in the order in which they finish. It knows nothing of beliefs, stores or
retries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from ._errors import InvalidInput
from ._likelihood import Answer, LogLikelihood, call, call_many

if TYPE_CHECKING:
    from concurrent.futures import Executor

#: Accepted as ``executor``: nothing, a number of processes, an executor, a Dask client, or a function that makes an executor.
ExecutorLike: TypeAlias = "int | Executor | Any | None"


@dataclass(frozen=True, eq=False, slots=True)
class Task:
    """One attempt at a job."""

    id: int
    theta: np.ndarray
    attempt: int


class Evaluator(Protocol):
    """What the driver needs."""

    @property
    def workers(self) -> int:
        """How many evaluations run at the same time."""

    @property
    def in_flight(self) -> int:
        """How many tasks were started and not handed back."""

    def start(self, task: Task) -> None:
        """Takes a task and returns at once."""

    def wait(self, seconds: float) -> list[tuple[Task, Answer]]:
        """What has finished, waiting for at most so long."""

    def collect(self) -> list[tuple[Task, Answer]]:
        """What has finished already; nothing new is begun."""

    def close(self) -> None:
        """Gives up what is running. Called again, it does nothing."""


class Here:
    """Evaluates in this thread; a vectorised function is called once for everything that waits."""

    workers = 1

    def __init__(self, function: LogLikelihood, names: Sequence[str] | None, vectorized: bool) -> None:
        self._function, self._names, self._vectorized = function, names, vectorized
        self._queue: deque[Task] = deque()

    @property
    def in_flight(self) -> int:
        return len(self._queue)

    def start(self, task: Task) -> None:
        self._queue.append(task)

    def wait(self, seconds: float) -> list[tuple[Task, Answer]]:
        if self._vectorized:
            tasks = list(self._queue)
            answers = call_many(self._function, np.stack([task.theta for task in tasks]), self._names)
            self._queue.clear()
            return list(zip(tasks, answers, strict=True))
        answer = call(self._function, self._queue[0].theta, self._names)
        return [(self._queue.popleft(), answer)]

    def collect(self) -> list[tuple[Task, Answer]]:
        return []

    def close(self) -> None:
        self._queue.clear()


def evaluator(
    executor: ExecutorLike,
    function: LogLikelihood,
    names: Sequence[str] | None,
    *,
    vectorized: bool,
    timeout: float | None,
    workers: int | None,
    batch: int,
) -> Evaluator:
    """The evaluator for what a user gave as ``executor``."""
    if not callable(function):
        raise InvalidInput(f"log_likelihood is {function!r}, expected a function")
    if timeout is not None and not 0.0 < timeout < float("inf"):
        raise InvalidInput(f"timeout is {timeout!r}, expected seconds > 0")
    if workers is not None and workers < 1:
        raise InvalidInput(f"workers is {workers!r}, expected at least 1")
    if vectorized and executor is not None:
        raise InvalidInput(
            "vectorized=True with an executor, expected executor=None: a vectorised function gets all points of a batch at once"
        )
    if executor is None:
        if timeout is not None:
            raise InvalidInput(
                "timeout with executor=None, expected an executor: nothing can end a function in this thread; executor=1 is a process"
            )
        return Here(function, names, vectorized)
    if isinstance(executor, (bool, float)):
        raise InvalidInput(f"executor is {executor!r}, expected a number of processes, an Executor or None")
    if isinstance(executor, (int, np.integer)):
        from ._processes import Processes

        return Processes(int(executor), function, names, timeout)
    from ._futures import Futures

    return Futures(executor, function, names, timeout, workers, batch)
