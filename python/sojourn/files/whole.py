"""Writes a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """Writes a file atomically, over one of the same name. Raises OSError; nothing is left of it then.

    A link leads to the file; a device or pipe, as /dev/null, is written to and stays.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    with _written(path, content) as unfinished:
        unfinished.replace(path)


def write_new(path: Path, content: bytes) -> bool:
    """Writes a file atomically. False if there is one of the same name. Raises OSError as ``write``."""
    with _written(path, content) as unfinished:
        try:
            # Fails if the name exists, even on network file systems.
            os.link(unfinished, path)
        except FileExistsError:
            return False
    return True


@contextmanager
def _written(path: Path, content: bytes) -> Iterator[Path]:
    """A temporary file with this content, beside ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        try:
            with unfinished.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            # That of a full disk has no name.
            error.filename = error.filename or os.fspath(path)
            raise
        yield unfinished
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
