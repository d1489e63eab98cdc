"""Calling the user's function: what it returns becomes a number or a failure with a kind. This is what runs on workers."""

from __future__ import annotations

import numbers
import os
import platform
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

LogLikelihood: TypeAlias = Callable[[Any], Any]

#: Messages and values are shown to people: longer than this, they are cut.
_MOST = 400


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one attempt: a value, or the kind of failure and a message."""

    value: float | None = None
    kind: str | None = None
    message: str = ""
    seconds: float = 0.0
    worker: str | None = None
    blob: Any = None
    #: The standard deviation of the value's noise, where it is known.
    sd: float | None = None
    #: No other attempt makes sense, whatever the kind.
    final: bool = False


class NotANumber(ValueError):
    """A returned value that is not a real number."""


def call(function: LogLikelihood, theta: np.ndarray, names: Sequence[str] | None, attempt: int = 1) -> Answer:
    """Calls ``function`` at one point, with a dict if there are ``names``.

    ``attempt`` makes every try a different call, for executors that remember results by their arguments.
    """
    begin = time.perf_counter()
    try:
        returned = function(_argument(theta, names))
    except Exception as error:
        message = describe(error) + _advice(error, names)
        return Answer(kind="exception", message=message, seconds=time.perf_counter() - begin, worker=worker())
    return _answer(returned, time.perf_counter() - begin)


def call_many(function: LogLikelihood, thetas: np.ndarray, names: Sequence[str] | None) -> list[Answer]:
    """Calls ``function`` once for all rows; if that fails, once for each, so that one bad point costs only itself."""
    begin = time.perf_counter()
    try:
        returned = function(_argument(thetas, names))
        # A tuple of as many numbers as there are points is values; one of columns holds what belongs to them.
        several = isinstance(returned, tuple) and (len(returned) == 2 or (len(returned) == 3 and hasattr(returned[0], "__len__")))
        values, *beside = returned if several else (returned,)
        beside = [column if column is not None else [None] * len(thetas) for column in beside]
        if len(values) != len(thetas) or any(len(column) != len(thetas) for column in beside):
            raise NotANumber(f"{len(values)} values for {len(thetas)} points")
    except Exception as error:
        if len(thetas) > 1:
            return [answer for theta in thetas for answer in call_many(function, theta[np.newaxis], names)]
        kind = "parse" if isinstance(error, NotANumber) else "exception"
        message = describe(error) + _advice(error, names)
        return [Answer(kind=kind, message=message, seconds=time.perf_counter() - begin, worker=worker())]
    seconds = (time.perf_counter() - begin) / len(thetas)
    if not beside:
        return [_answer((value, None), seconds) for value in values]
    return [_answer(one, seconds) for one in zip(values, *beside, strict=True)]


def _argument(theta: np.ndarray, names: Sequence[str] | None) -> Any:
    """A copy of their own: what a function does to its argument is its own affair."""
    if names is None:
        return theta.copy()
    columns = theta.T.copy() if theta.ndim == 2 else theta.tolist()
    return dict(zip(names, columns, strict=True))


def _advice(error: Exception, names: Sequence[str] | None) -> str:
    """What to do where a function expects its parameters in another way than it gets them."""
    if names is None and isinstance(error, IndexError) and "only integers, slices" in _shown(str, error):
        return "; if that is the point: it is an array, with pass_dict=True a dict"
    # Raised by the call, not within it.
    called = error.__traceback__ is not None and error.__traceback__.tb_next is None
    if called and isinstance(error, TypeError) and "positional argument" in _shown(str, error):
        return "; all parameters are in one argument, an array or, with pass_dict=True, a dict"
    return ""


def _answer(returned: Any, seconds: float) -> Answer:
    returned, sd, blob = apart(returned)
    try:
        value = to_number(returned)
        sd = None if sd is None else to_number(sd, "sd")
    except NotANumber as error:
        return Answer(kind="parse", message=str(error), seconds=seconds, worker=worker())
    return Answer(value=value, seconds=seconds, worker=worker(), blob=blob, sd=sd)


def apart(returned: Any) -> tuple[Any, Any, Any]:
    """What a function returned, as value, standard deviation and blob. In a pair a number is a standard deviation, anything else a blob.

    >>> apart(-1.5), apart((-1.5, 0.2)), apart((-1.5, "a note")), apart((-1.5, 0.2, "a note"))
    ((-1.5, None, None), (-1.5, 0.2, None), (-1.5, None, 'a note'), (-1.5, 0.2, 'a note'))
    """
    match returned:
        case (value, sd, blob) if isinstance(returned, tuple):
            return value, sd, blob
        case (value, beside) if isinstance(returned, tuple):
            return (value, beside, None) if _is_scalar(beside) else (value, None, beside)
        case _:
            return returned, None, None


def _is_scalar(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return False
    # Arrays without a dimension too, of whatever package.
    return isinstance(value, (numbers.Real, Decimal)) or (hasattr(value, "item") and getattr(value, "shape", None) == ())


def to_number(returned: Any, what: str = "log-likelihood") -> float:
    """``returned`` as a float: any real number, also in an array of one. Nothing else is taken for one.

    >>> to_number(np.float32(1.5)), to_number(np.array([[2]]))
    (1.5, 2.0)
    >>> to_number("1.5")
    Traceback (most recent call last):
        ...
    batchquad._likelihood.NotANumber: the log-likelihood returned '1.5' (str), expected a real number
    """
    value = returned
    if isinstance(value, np.ma.MaskedArray):
        # A masked value converts to whatever lies under the mask.
        value = None if np.ma.is_masked(value) else value.filled()
    if not isinstance(value, (numbers.Real, Decimal)) and hasattr(value, "item"):
        try:
            value = value.item()
        except Exception:  # more than one element: refused below
            value = None
    if isinstance(value, (numbers.Real, Decimal)) and not isinstance(value, (bool, np.bool_)):
        try:
            return float(value)
        except (OverflowError, ValueError):  # an int beyond the largest float, a signalling NaN
            pass
    shown = _shorten(_shown(repr, returned))
    hint = "; does the function end without `return`?" if returned is None else ""
    if what != "log-likelihood":
        raise NotANumber(f"{what} is {shown} ({type(returned).__name__}), expected a real number")
    raise NotANumber(f"the log-likelihood returned {shown} ({type(returned).__name__}), expected a real number{hint}")


def describe(error: BaseException) -> str:
    """An exception on one line, with the place in which it was raised."""
    text = _shorten(f"{type(error).__name__}: {_shown(str, error)}".rstrip(": "))
    frames = traceback.extract_tb(error.__traceback__)
    # The first frame is ours.
    place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name})" if len(frames) > 1 else ""
    return text + place


def _shown(how: Callable[[Any], str], value: Any) -> str:
    """A value as text, also if its own methods fail."""
    try:
        return how(value)
    except Exception as error:
        return f"(a {type(value).__name__} that cannot be shown: {type(error).__name__})"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST else f"{line[:_MOST]} …"


def worker() -> str:
    """Who evaluates: machine, process and, beside the main one, thread."""
    thread = threading.current_thread()
    name = f"{platform.node()}:{os.getpid()}"
    return name if thread is threading.main_thread() else f"{name}:{thread.name}"
