"""Tables on standard output: drawn on a terminal, plain text in a file or pipe."""

from __future__ import annotations

import sys

from rich.console import Console, RenderableType

from sojourn.page.tables import plain


def show(table: RenderableType) -> None:
    """Prints a table."""
    if sys.stdout.isatty():
        Console().print(table)
    else:
        print(plain(table))
