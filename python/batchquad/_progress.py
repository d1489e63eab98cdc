"""How far a run is: one line that is written over, in terminals and notebooks; nothing in log files."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ._batchquad import duration
from ._text import plus_minus

if TYPE_CHECKING:
    from ._batchquad import Session


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    #: Evaluations answered, failures included, and how many there may be.
    evaluations: int
    max_evaluations: int
    #: How many of them failed.
    failures: int
    #: log Z and its standard deviation when the last batch was chosen.
    log_z: float | None
    log_z_sd: float | None
    #: Evaluations queued or running.
    in_flight: int
    #: Since the run began.
    seconds: float

    def __str__(self) -> str:
        known = self.log_z is not None and self.log_z_sd is not None
        parts = [f"log Z {plus_minus(self.log_z, self.log_z_sd) if known else 'unknown yet'}", f"{self.in_flight} in flight"]
        if self.failures:
            parts.append(f"{self.failures} failed")
        return f"{self.evaluations}/{self.max_evaluations} {', '.join(parts)}, {duration(self.seconds)}"


#: True for a line that is written over (or one a minute where that is not possible), False for nothing, None to show it where somebody
#: watches, or a function to be called with a `Progress`; one that returns True or raises StopIteration ends the run.
ProgressLike: TypeAlias = "bool | Callable[[Progress], object] | None"

_EVERY, _EVERY_LINE, _WIDTH = 0.1, 60.0, 20


class Display:
    """Shows the progress of one run."""

    def __init__(self, progress: ProgressLike) -> None:
        self._tell = progress if callable(progress) else None
        watched, self._notebook = _is_watched(), _in_notebook()
        self._line = not callable(progress) and progress is not False and watched
        self._log = progress is True and not watched
        self._began = self._last = time.monotonic()
        self._shown = 0
        self._handle: Any = None
        #: Whether the user's function said stop.
        self.stop = False

    def update(self, session: Session, in_flight: int, last: bool = False) -> None:
        """Shows the state, if it is time to; the last one stays in a notebook."""
        if (self._tell is None and not self._line and not self._log) or (last and self._handle is None):
            return
        now = time.monotonic()
        due = now - self._last >= (_EVERY if self._line else _EVERY_LINE) or last
        if self._tell is None and not due:
            return
        self._last = now
        done, most, failed, belief = session.progress()
        log_z, sd = belief or (None, None)
        state = Progress(done, most, failed, log_z, sd, in_flight, now - self._began)
        if self._tell is not None:
            try:
                answer = self._tell(state)
                # Any other answer is none: functions that print or append return all sorts of things.
                self.stop = self.stop or (isinstance(answer, (bool, np.bool_)) and bool(answer))
            except StopIteration:
                self.stop = True
        elif self._line:
            full = min(_WIDTH, _WIDTH * done // max(most, 1))
            self._write(f"{'█' * full}{'░' * (_WIDTH - full)} {state}")
        else:
            print(f"batchquad: {state}", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Clears the line, so that what follows stands alone."""
        if self._shown and not self._notebook:
            self._write("")

    def _write(self, text: str) -> None:
        if self._notebook:
            self._display(text)
            self._shown = len(text)
            return
        try:
            sys.stderr.write(f"\r{text.ljust(self._shown)}\r" if not text else f"\r{text.ljust(self._shown)}")
            sys.stderr.flush()
        except (OSError, ValueError):  # closed: nobody watches any more
            self._line = False
        self._shown = len(text)

    def _display(self, text: str) -> None:
        """In a notebook, one line of output that changes: standard error would be a block with a line for every update."""
        shown = {"text/plain": text}
        if self._handle is None:
            ipython: Any = importlib.import_module("IPython.display")
            self._handle = ipython.display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def _is_watched() -> bool:
    try:
        if sys.stderr.isatty():
            return True
    except (AttributeError, ValueError):  # no standard error at all
        return False
    return _in_notebook()
