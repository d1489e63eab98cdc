"""A pool of processes of our own: a worker that dies or hangs costs the evaluation that it had, and is replaced."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any

from ._errors import ExecutorError, InvalidInput
from ._evaluate import Task
from ._likelihood import Answer, LogLikelihood, call, describe

#: More processes than any machine serves; beyond it a typing error is the likely cause.
_MOST = 4096

#: From <sys/prctl.h>.
_PR_SET_PDEATHSIG = 1


class Lane:
    """One worker process, and the task that it has."""

    def __init__(self, function: LogLikelihood, names: Sequence[str] | None, others: list[Lane]) -> None:
        # Forked, functions need not be picklable: lambdas, closures and notebooks work.
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        self.pipe, theirs = context.Pipe()
        inherited = [lane.pipe for lane in others] + [self.pipe] if context.get_start_method() == "fork" else []
        self.process: BaseProcess = context.Process(
            target=_serve, args=(theirs, inherited, function, names), name="batchquad-worker", daemon=True
        )
        with warnings.catch_warnings():
            # A fork beside other threads is safe if the child does not need them; ours runs the user's function and nothing else.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.began = 0.0

    def begin(self, task: Task) -> bool:
        """Hands over a task; False when the worker is gone."""
        try:
            self.pipe.send((task.theta, task.attempt))
        except OSError:
            return False
        self.task, self.began = task, time.monotonic()
        return True

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


class Processes:
    """Evaluates on ``n`` processes."""

    def __init__(self, n: int, function: LogLikelihood, names: Sequence[str] | None, timeout: float | None) -> None:
        if not 1 <= n <= _MOST:
            raise InvalidInput(f"executor is {n}, expected a number of processes from 1 to {_MOST}")
        self.workers = n
        self._function, self._names, self._timeout = function, names, timeout
        self._queue: deque[Task] = deque()
        self._lanes: list[Lane] = []

    @property
    def in_flight(self) -> int:
        return len(self._queue) + sum(lane.task is not None for lane in self._lanes)

    def start(self, task: Task) -> None:
        self._queue.append(task)

    def wait(self, seconds: float) -> list[tuple[Task, Answer]]:
        self._hand_out()
        busy = [lane for lane in self._lanes if lane.task is not None]
        if self._timeout is not None:
            now = time.monotonic()
            seconds = max(0.0, min([seconds] + [lane.began + self._timeout - now for lane in busy]))
        connection.wait([lane.pipe for lane in busy], seconds)
        return self.collect()

    def collect(self) -> list[tuple[Task, Answer]]:
        finished = []
        for lane in list(self._lanes):
            if lane.task is None:
                continue
            answer = self._look(lane)
            if answer is not None:
                finished.append((lane.task, answer))
                lane.task = None
        return finished

    def close(self) -> None:
        self._queue.clear()
        while self._lanes:
            self._lanes.pop().end()

    def _hand_out(self) -> None:
        while self._queue:
            lane = next((lane for lane in self._lanes if lane.task is None), None)
            if lane is None:
                if len(self._lanes) == self.workers:
                    return
                lane = self._new_lane()
            if lane.begin(self._queue[0]):
                self._queue.popleft()
            else:
                self._drop(lane)

    def _new_lane(self) -> Lane:
        try:
            lane = Lane(self._function, self._names, self._lanes)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InvalidInput(
                f"log_likelihood cannot be sent to a process ({error}), expected a function at the top of a module"
            ) from error
        except OSError as error:
            raise ExecutorError(f"no process could be started: {error}") from error
        self._lanes.append(lane)
        return lane

    def _drop(self, lane: Lane) -> None:
        self._lanes.remove(lane)
        lane.end()

    def _look(self, lane: Lane) -> Answer | None:
        """What came of a lane's task, if anything did."""
        seconds = time.monotonic() - lane.began
        try:
            if lane.pipe.poll():
                answer: Answer = lane.pipe.recv()
                return answer
        except (EOFError, OSError):
            lane.process.join(1.0)
            self._drop(lane)
            return Answer(kind="lost-worker", message=_obituary(lane.process), seconds=seconds)
        except Exception as error:  # a blob whose class cannot be unpickled here
            return Answer(kind="exception", message=f"the answer cannot be read: {describe(error)}", seconds=seconds)
        if self._timeout is not None and seconds >= self._timeout:
            self._drop(lane)
            return Answer(kind="timeout", message=f"no answer within timeout = {self._timeout} s", seconds=seconds)
        return None


def _obituary(process: BaseProcess) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        try:
            return f"process {process.pid} was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"process {process.pid} was ended by signal {-code}"
    return f"process {process.pid} ended with exit code {code}"


def _serve(
    pipe: connection.Connection,
    inherited: list[connection.Connection],
    function: LogLikelihood,
    names: Sequence[str] | None,
) -> None:
    """A worker: answers until its pipe ends, and ends with its parent."""
    for end in inherited:
        # While a copy of the parent's end is open anywhere, nobody sees that the parent is gone.
        end.close()
    # Ctrl-C reaches every process of the terminal; the parent decides what becomes of this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _let_the_system_end_us()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            theta, attempt = pipe.recv()
        except EOFError:
            return
        try:
            answer = call(function, theta, names, attempt)
        except SystemExit as error:
            answer = Answer(kind="exception", message=describe(error))
        try:
            pipe.send(answer)
        except OSError:
            return
        except Exception as error:  # a blob that cannot be pickled
            pipe.send(Answer(kind="exception", message=f"the blob cannot be sent: {describe(error)}", worker=answer.worker))


def _let_the_system_end_us() -> None:
    """Asks Linux to kill this process with its parent: a thread would have to wait for a function that keeps the interpreter's lock."""
    if sys.platform != "linux":
        return
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):  # a system without it: the thread has to do
        return
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:  # it was quicker
        os._exit(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
