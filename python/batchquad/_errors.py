"""What can go wrong, as exceptions."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._study import Study


class Error(Exception):
    """Every error of batchquad that is not a mistake in the call."""


class InvalidInput(Error, ValueError):
    """A value that cannot be used; the message names it and what was expected."""


class NoEvidence(Error):
    """There is no log Z: no finite log-likelihood was ever seen."""


class NumericalError(Error, ArithmeticError):
    """A numerical procedure could not be completed even after repairs."""


class ExecutorError(Error):
    """The executor takes no jobs. What was evaluated is kept, and the jobs that were asked are still pending."""


class StoreError(Error):
    """A store cannot be created, read or written to."""


class StoreLocked(StoreError):
    """Another process has the store."""

    path: str
    pid: int | None = None
    host: str | None = None


class StoreDamaged(StoreError):
    """A record of the store cannot be trusted; nothing is written to such a store."""

    path: str
    record: int


class StoreDiffers(StoreError, ValueError):
    """The store belongs to another problem."""

    differences: list[str]


def interrupted(study: Study) -> Interrupted:
    """The exception for a run that was interrupted; uncaught, it ends the process as Ctrl-C does, with exit code 130."""
    global _HOOKED
    if not _HOOKED:
        _HOOKED, before = True, sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            before(kind, error, trace)
            # Python does this for KeyboardInterrupt itself, and not for what is derived from it.
            if isinstance(error, Interrupted):
                raise SystemExit(130)

        sys.excepthook = hook
    return Interrupted(study)


_HOOKED = False


class Interrupted(KeyboardInterrupt):
    """A run was interrupted (Ctrl-C). Nothing that was evaluated is lost: ``study`` holds it, and so does the store if there is one."""

    def __init__(self, study: Study) -> None:
        where = f"run the same call again, or Study.open({study.store!r})" if study.store else "go on with the attribute `study`"
        super().__init__(f"interrupted and resumable: all finished evaluations are kept; {where}")
        self.study = study
