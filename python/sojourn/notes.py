"""What the user should know and need not act on."""

from __future__ import annotations

import sys
import warnings
from typing import TextIO


class Note(UserWarning):
    """A remark in words for a user; the command line prints it as one line."""


def print_as_lines() -> None:
    """From now on a note is a line on standard error, without the place in our code that Python tells of a warning."""
    otherwise = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, Note):
            print(f"note: {message}", file=sys.stderr)
        else:
            otherwise(message, category, filename, lineno, file, line)

    warnings.showwarning = show
