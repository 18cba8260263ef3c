"""What commands write for the user, and the line if that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sojourn.cli.outcome import FAILED, Stopped
from sojourn.files import whole
from sojourn.files.storage import write_failed


def write(out: Path, content: bytes) -> None:
    """Writes a file that the user named. Raises Stopped if it cannot be written."""
    try:
        whole.write(out, content)
    except OSError as error:
        raise Stopped(FAILED, f"{out}: cannot be written: {error.strerror}") from None


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Ends the command if what is written within the context cannot be.

    Raises Stopped if the operating system has refused it.
    """
    try:
        yield
    except OSError as error:
        raise Stopped(FAILED, write_failed(directory, error)) from None
