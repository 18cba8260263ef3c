"""Tables on standard output or standard error: drawn on a terminal, plain text in a file or pipe."""

from __future__ import annotations

import sys

from rich.console import Console, RenderableType

from sojourn.page.tables import PLAIN_WIDTH, plain


def show(table: RenderableType, *, aside: bool = False) -> None:
    """Prints a table; ``aside``: on standard error."""
    stream = sys.stderr if aside else sys.stdout
    if stream.isatty():
        Console(stderr=aside).print(table)
    else:
        print(plain(table), file=stream)


def width(*, aside: bool = False) -> int:
    """The width of tables there."""
    return Console(stderr=aside).width if (sys.stderr if aside else sys.stdout).isatty() else PLAIN_WIDTH
