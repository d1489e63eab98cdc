"""The program ``batchquad``, which is part of the native module."""

from __future__ import annotations

import signal
import sys

from ._batchquad import program


def main() -> int:
    """Runs the program with the words of this process and gives its exit code."""
    if hasattr(signal, "SIGINT"):
        # The program listens for itself; Python would raise an exception afterwards.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return program(["batchquad", *sys.argv[1:]])
