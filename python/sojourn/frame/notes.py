"""Notes for the user that require no action."""

from __future__ import annotations

import sys
import warnings
from typing import TextIO


class Note(UserWarning):
    """A remark for the user; the command line prints it as one line."""


def print_as_lines() -> None:
    """Prints notes as lines on standard error from now on, without the place in the code that a warning has."""
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
