"""What can go wrong with a run on Linux."""

from __future__ import annotations

from sojourn._core import RunError


class LinuxError(RunError):
    """A run on Linux cannot be made or failed; the message is one line, with the way out where there is one."""
