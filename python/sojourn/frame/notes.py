"""Notes for the user that require no action."""

from __future__ import annotations

import warnings


class Note(UserWarning):
    """A remark for the user; the command line prints it as one line."""


def print_as_lines() -> None:
    """Prints notes as lines on standard error from now on, without the place in the code that a warning has."""
    otherwise = warnings.formatwarning

    def line_of(message: Warning | str, category: type[Warning], *place: object) -> str:
        return f"note: {message}\n" if issubclass(category, Note) else otherwise(message, category, *place)  # type: ignore[arg-type]

    warnings.formatwarning = line_of  # type: ignore[assignment]
