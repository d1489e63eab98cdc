"""Writing a file: whole or not at all, and over nothing that somebody else needs."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from ._errors import InvalidInput


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Writes a file so that it is there as a whole or as it was.

    Only regular files are replaced. A device or a named pipe stays what it is and is written to, and what a link leads to is left alone unless
    it is empty: who made the link is not always who gave its name.
    """
    target = Path(path)
    try:
        there = target.stat()
    except FileNotFoundError:
        if target.is_symlink():
            raise InvalidInput(f"{target} is a link to nothing, expected a file to write to") from None
        there = None
    if there is not None and not stat.S_ISREG(there.st_mode):
        return _write_into(target, there.st_mode, text)
    if target.is_symlink():
        if there is not None and there.st_size > 0:
            raise InvalidInput(f"{target} is a link to a file that is not empty, expected another name")
        target = target.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _write_into(target: Path, mode: int, text: str) -> None:
    """Writes to what is not a regular file: nothing is created, cut or renamed."""
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        kind = "a directory" if stat.S_ISDIR(mode) else "a disk or a socket"
        raise InvalidInput(f"{target} is {kind}, expected a file to write to")
    # Opening a pipe waits for its reader, perhaps for ever; asked not to wait, the system says that there is none.
    try:
        handle = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written to (a pipe needs a reader): {error.strerror}") from None
    if hasattr(os, "set_blocking"):
        os.set_blocking(handle, True)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(text)
