"""The loop: ask, evaluate, record, until a rule says stop. The rules are the core's."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from ._batchquad import clean
from ._evaluate import Evaluator, Here, Task
from ._likelihood import Answer
from ._progress import Display
from ._text import plus_minus

if TYPE_CHECKING:
    from ._batchquad import Session

_LOG = logging.getLogger("batchquad")

#: How long a step waits for an answer before it looks around.
_PATIENCE = 0.2

#: The same while points are being chosen: they are handed out when they are known.
_GLANCE = 0.005

#: Kinds whose likely cause is the machinery, so that trying again is sensible.
_INFRASTRUCTURE = frozenset(["signal", "timeout", "lost-worker"])

#: Larger blobs are kept in memory only: a store is for the run, not for data.
_LARGEST_BLOB = 1 << 20


class Driver:
    """One run of a session on an evaluator."""

    def __init__(self, session: Session, evaluator: Evaluator, retries: int, display: Display, blobs: dict[int, Any]) -> None:
        self._session, self._evaluator, self._retries, self._display, self._blobs = session, evaluator, retries, display, blobs
        self._waits_for_all = json.loads(session.settings)["schedule"] == "batch"
        self._first: dict[int, int] = {}
        self._ending: tuple[str, str] | None = None
        #: Whether what is in flight is to have nobody beside it.
        self._alone = False

    def run(self) -> tuple[str, str]:
        """Runs to the end; says how it ended and why. What is interrupted stays pending."""
        ended = self._session.begin()
        if ended is not None:
            return ended
        began = time.monotonic()
        try:
            resumed = deque((id, theta) for id, theta, _ in self._session.pending())
            if self._session.was_killed:
                # One of them may have done it: those that were not tried since come first.
                resumed = deque(sorted(resumed, key=lambda job: self._session.attempts(job[0])))
            else:
                while resumed:
                    id, theta = resumed.popleft()
                    self._start(id, theta, self._session.attempts(id) + 1)
            while True:
                while resumed and self._evaluator.in_flight < self._room(resumed[0][0]):
                    self._try_again(*resumed.popleft())
                in_flight = self._evaluator.in_flight
                self._alone &= in_flight > 0
                if self._ending is None and not resumed and not self._alone and not (in_flight and self._waits_for_all):
                    jobs, self._ending = self._session.step(self._evaluator.workers, in_flight, time.monotonic() - began)
                    self._log_step(jobs)
                    for id, theta, _ in jobs:
                        self._start(id, theta, 1)
                if self._evaluator.in_flight:
                    self._record_all(self._evaluator.wait(_GLANCE if self._session.is_choosing else _PATIENCE))
                elif self._ending is not None and not resumed:
                    self._display.update(self._session, 0, last=True)
                    ended = self._session.honest(*self._ending)
                    _LOG.info("the run has ended: %s, %s", *ended)
                    return ended
                self._display.update(self._session, self._evaluator.in_flight)
                if self._display.stop and self._ending is None:
                    self._ending = ("interrupted", "the progress function said stop")
                    resumed.clear()
                    if isinstance(self._evaluator, Here):
                        # Nothing is running: what waits stays pending.
                        self._evaluator.close()
        except KeyboardInterrupt:
            # What the interrupt itself broke is not the likelihood's doing.
            self._record_all([found for found in self._evaluator.collect() if found[1].kind not in _INFRASTRUCTURE])
            raise
        finally:
            self._session.end()
            self._evaluator.close()
            self._display.finish()

    def _log_step(self, jobs: list[tuple[int, np.ndarray, int]]) -> None:
        if jobs and _LOG.isEnabledFor(logging.INFO):
            done, most, _, belief = self._session.progress()
            known = "unknown yet" if belief is None else plus_minus(*belief)
            _LOG.info("%d of %d evaluations, log Z %s; %d more points chosen", done, most, known, len(jobs))

    def _room(self, id: int) -> int:
        """How many jobs may be in flight with this one, which was pending when the process was killed: the last time it has nobody beside it."""
        return self._evaluator.workers if self._session.attempts(id) < self._retries else 1

    def _try_again(self, id: int, theta: np.ndarray) -> None:
        """Starts a job that was pending when the process was killed; that is on record before it can happen again."""
        attempt = self._session.attempts(id) + 1
        times = "once" if attempt == 1 else f"{attempt} times"
        message = f"the process was killed {times} while this was pending"
        if attempt > self._retries + 1:
            self._session.fail(id, "lost-worker", message, attempt)
        else:
            self._session.retry(id, attempt, "lost-worker", message)
            self._start(id, theta, attempt + 1)
            self._alone = attempt > self._retries

    def _start(self, id: int, theta: np.ndarray, attempt: int) -> None:
        self._first.setdefault(id, attempt)
        self._evaluator.start(Task(id, theta, attempt))

    def _record_all(self, finished: list[tuple[Task, Answer]]) -> None:
        """Records what came of tasks; plain values all at once, because a disk takes milliseconds for each time it is asked."""
        plain, others = [], []
        for task, answer in finished:
            if answer.value is not None and answer.blob is None:
                plain.append((task.id, answer.value, task.attempt, answer.seconds, answer.worker, answer.sd))
            else:
                others.append((task, answer))
        if plain:
            self._session.tell_all(plain)
        for id, *_ in plain:
            self._ending = self._session.losing(id) if self._ending is None else self._ending
        for task, answer in others:
            self._record(task, answer)

    def _record(self, task: Task, answer: Answer) -> None:
        session, kind, message = self._session, answer.kind, answer.message
        if answer.value is not None:
            record_blob(session, self._blobs, task.id, answer.blob)
            session.tell(task.id, answer.value, task.attempt, answer.seconds, answer.worker, answer.sd)
        else:
            assert kind is not None
            tried = task.attempt - self._first[task.id]
            given_up = answer.final or (self._ending is not None and self._ending[0] == "failed")
            if kind in _INFRASTRUCTURE and tried < self._retries and not given_up:
                session.retry(task.id, task.attempt, kind, message)
                _LOG.warning(
                    "evaluation %d is tried again after attempt %d (%s): %s", task.id, task.attempt, kind, clean(message)
                )
                self._evaluator.start(Task(task.id, task.theta, task.attempt + 1))
                return
            session.fail(task.id, kind, message, task.attempt, answer.seconds, answer.worker)
            _LOG.warning("evaluation %d failed (%s): %s", task.id, kind, clean(message))
        self._ending = session.losing(task.id) if self._ending is None else self._ending


def record_blob(session: Session, blobs: dict[int, Any], id: int, blob: Any) -> None:
    """Keeps what a function returned beside its value: in memory, and in the store if JSON can hold it. Never pickled."""
    if blob is None:
        return
    blobs[id] = blob
    try:
        text = json.dumps({"blob": {"id": id, "value": blob}}, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return
    if len(text) <= _LARGEST_BLOB:
        # Before its value: a crash between the two then loses neither.
        session.blob(text)


def recall_blobs(session: Session) -> dict[int, Any]:
    """The blobs in a store."""
    blobs = {}
    for text in session.blobs():
        try:
            blob = json.loads(text)["blob"]
            blobs[int(blob["id"])] = blob["value"]
        except (ValueError, KeyError, TypeError):  # somebody else's
            continue
    return blobs


def _plain(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")
