"""Any ``concurrent.futures.Executor``: what it cannot do is done here, what it breaks is mended or said."""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import Executor, Future
from typing import Any

from ._errors import ExecutorError, InvalidInput
from ._evaluate import Task
from ._likelihood import Answer, LogLikelihood, call, describe

#: How often, and after how many seconds, a job is offered again to an executor that refuses it.
_PAUSES = (0.1, 0.5)

#: Failures that would repeat: the function or its result cannot travel.
_DETERMINISTIC = (pickle.PicklingError, TypeError, AttributeError, ValueError, ImportError, SystemExit)


class Futures:
    """Evaluates on an executor.

    A worker that dies may take the whole executor with it, and which of the running tasks killed it is unknown. An executor that can be
    made again is, and the suspects then run one at a time, so that a poisonous point costs only itself.
    """

    def __init__(
        self,
        executor: Any,
        function: LogLikelihood,
        names: Sequence[str] | None,
        timeout: float | None,
        workers: int | None,
        batch: int,
    ) -> None:
        self._make: Callable[[], Executor] | None = None
        self._restore: Callable[[], None] = lambda: None
        #: Made here, and so to be ended here.
        self._owned: Executor | None = None
        if _is_dask(executor):
            from ._dask import adopt

            executor, self._restore = adopt(executor)
        elif not hasattr(executor, "submit") and callable(executor):
            self._make, executor = executor, executor()
            self._owned = executor
        if not hasattr(executor, "submit"):
            raise InvalidInput(f"executor is {executor!r}, expected a number of processes, an Executor or None")
        self._executor: Executor = executor
        self._function, self._names, self._timeout = function, names, timeout
        self._given_workers, self._batch = workers, batch
        self._queue: deque[Task] = deque()
        self._suspects: deque[Task] = deque()
        self._running: dict[Future[Answer], tuple[Task, float]] = {}
        #: Beyond their timeout and not to be cancelled: they keep their workers busy, and a late answer still counts.
        self._late: dict[Future[Answer], Task] = {}
        self._broken: BaseException | None = None

    @property
    def workers(self) -> int:
        return self._given_workers or _workers_of(self._executor) or self._batch

    @property
    def in_flight(self) -> int:
        return len(self._queue) + len(self._suspects) + len(self._running)

    def start(self, task: Task) -> None:
        self._queue.append(task)

    def wait(self, seconds: float) -> list[tuple[Task, Answer]]:
        if self._broken is not None:
            reason = f"the executor is broken: {describe(self._broken)}; executor={self.workers}, a pool that heals, would go on"
            raise ExecutorError(reason) from self._broken
        self._hand_out()
        if self._timeout is not None:
            now = time.monotonic()
            seconds = max(0.0, min([seconds] + [began + self._timeout - now for _, began in self._running.values()]))
        if self._running:
            futures.wait([*self._running, *self._late], seconds, futures.FIRST_COMPLETED)
        return self.collect()

    def collect(self) -> list[tuple[Task, Answer]]:
        finished: list[tuple[Task, Answer]] = []
        broken: list[tuple[Task, BaseException]] = []
        for future in [future for future in self._running if future.done()]:
            # Dropped at once: Dask keeps a result in a worker's memory for as long as somebody holds its future.
            task, began = self._running.pop(future)
            error = futures.CancelledError() if future.cancelled() else future.exception()
            if error is None:
                finished.append((task, future.result()))
            elif isinstance(error, futures.BrokenExecutor):
                broken.append((task, error))
            else:
                finished.append((task, _lost(error, time.monotonic() - began)))
        for future in [future for future in self._late if future.done()]:
            task = self._late.pop(future)
            if not future.cancelled() and future.exception() is None:
                finished.append((task, future.result()))
        if broken:
            finished += self._mend(broken)
        return finished + self._expire()

    def close(self) -> None:
        for future in [*self._running, *self._late]:
            future.cancel()
        self._queue.clear()
        self._suspects.clear()
        self._running.clear()
        self._late.clear()
        if self._owned is not None:
            self._owned.shutdown(wait=False)
            self._owned = None
        self._restore()
        self._restore = lambda: None

    def _room(self) -> int:
        if self._suspects:
            return 1 - len(self._running)
        # With a timeout the clock starts at submission, so nothing may wait in the executor's own queue; with Dask a worker that dies
        # takes along what waits for it.
        if self._timeout is None and not _is_dask(self._executor):
            return len(self._queue)
        return self.workers - len(self._late) - len(self._running)

    def _hand_out(self) -> None:
        pauses = iter(_PAUSES)
        while (queue := self._suspects or self._queue) and self._room() > 0:
            task = queue[0]
            try:
                future = self._executor.submit(call, self._function, task.theta, self._names, task.attempt)
            except Exception as error:
                if isinstance(error, futures.BrokenExecutor) and self._renew():
                    continue
                if self._running:
                    return
                pause = next(pauses, None)
                if pause is None:
                    raise ExecutorError(f"the executor takes no jobs: {describe(error)}") from error
                time.sleep(pause)
                continue
            self._running[future] = (task, time.monotonic())
            queue.popleft()
        if self._late and not self._running and self._room() < 1:
            raise ExecutorError(
                f"all {self.workers} workers of the executor are busy with evaluations beyond timeout = {self._timeout} s, which it "
                "cannot end; processes can be ended: executor=2"
            )

    def _mend(self, broken: list[tuple[Task, BaseException]]) -> list[tuple[Task, Answer]]:
        """After the executor broke: one task that ran alone did it; of several, all are suspects and nothing is known."""
        lost = [task for task, _ in self._running.values()]
        self._running.clear()
        suspects, error = [task for task, _ in broken] + lost, broken[0][1]
        if not self._renew():
            self._suspects.extend(suspects)
            # Raised by the next wait: what has finished is handed back first.
            self._broken = error
            return []
        if len(suspects) == 1:
            return [(suspects[0], Answer(kind="lost-worker", message=describe(error)))]
        self._suspects.extend(suspects)
        return []

    def _renew(self) -> bool:
        executor = self._make() if self._make is not None else _remade(self._executor)
        if executor is None:
            return False
        if self._owned is not None:
            self._owned.shutdown(wait=False)
        self._executor = self._owned = executor
        return True

    def _expire(self) -> list[tuple[Task, Answer]]:
        if self._timeout is None:
            return []
        expired, now = [], time.monotonic()
        for future, (task, began) in list(self._running.items()):
            if now - began < self._timeout:
                continue
            del self._running[future]
            message, final = f"no answer within timeout = {self._timeout} s", not future.cancel()
            if final:
                # It cannot be ended and would hang again: another attempt would only take another worker.
                self._late[future] = task
                message += ", and it is still running"
            expired.append((task, Answer(kind="timeout", message=message, seconds=now - began, final=final)))
        return expired


def _lost(error: BaseException, seconds: float) -> Answer:
    """An exception that is not the function's own, which are caught where it runs."""
    if isinstance(error, futures.CancelledError):
        return Answer(kind="lost-worker", message="the executor cancelled it", seconds=seconds)
    kind = "exception" if isinstance(error, _DETERMINISTIC) else "lost-worker"
    return Answer(kind=kind, message=describe(error), seconds=seconds)


def _is_dask(executor: object) -> bool:
    return type(executor).__module__.partition(".")[0] == "distributed"


def _workers_of(executor: Executor) -> int | None:
    """How many workers an executor says that it has."""
    if _is_dask(executor):
        from ._dask import threads

        return threads(executor)
    for name in ("_max_workers", "num_workers"):
        number = getattr(executor, name, None)
        if isinstance(number, int) and number > 0:
            return number
    return None


def _remade(executor: Executor) -> Executor | None:
    """A new executor like a broken one, for those that have all it takes written on them."""
    kind = f"{type(executor).__module__}.{type(executor).__name__}"
    given: Any = executor
    try:
        if kind == "concurrent.futures.process.ProcessPoolExecutor":
            return futures.ProcessPoolExecutor(given._max_workers, given._mp_context, given._initializer, given._initargs)
        if kind == "loky.reusable_executor._ReusablePoolExecutor":
            from loky import get_reusable_executor

            renewed: Executor = get_reusable_executor(max_workers=given._max_workers)
            return renewed
    except AttributeError:  # another release of theirs
        pass
    return None
