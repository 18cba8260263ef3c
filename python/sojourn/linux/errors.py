"""The error of a run on Linux."""

from __future__ import annotations

from sojourn._core import RunError


class LinuxError(RunError):
    """A run on Linux cannot be made or failed; the message is one line, with a remedy if there is one."""
