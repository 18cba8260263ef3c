"""What commands print and write: tables, drawn on a terminal and plain in a file or pipe; files that the user named."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console, RenderableType

from sojourn import _core
from sojourn.cli.outcome import FAILED, Stopped
from sojourn.files import whole
from sojourn.files.storage import write_failed
from sojourn.page.sheet import PLAIN_WIDTH, plain


def show(table: RenderableType, *, aside: bool = False) -> None:
    """Prints a table; ``aside``: on standard error."""
    stream = sys.stderr if aside else sys.stdout
    if stream.isatty():
        Console(stderr=aside, emoji=False).print(table)
    else:
        print(plain(table), file=stream)


def width(*, aside: bool = False) -> int:
    """The width of tables there."""
    return Console(stderr=aside).width if (sys.stderr if aside else sys.stdout).isatty() else PLAIN_WIDTH


def write(out: Path, content: bytes) -> None:
    """Writes a file that the user named. Raises Stopped if it cannot be written."""
    try:
        whole.write(out, content)
    except OSError as error:
        raise Stopped(FAILED, f"{out}: cannot be written: {error.strerror}") from None


def new(out: Path, *files: Path) -> None:
    """Refuses ``--out`` if one of the files that it makes is there: an experiment may have been edited since."""
    for file in files:
        if file.exists():
            raise _core.ExperimentError(f'--out: got "{out}"; must be a new file: {file} exists')


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Ends the command if the operating system refuses what is written within the context."""
    try:
        yield
    except OSError as error:
        raise Stopped(FAILED, write_failed(directory, error)) from None
