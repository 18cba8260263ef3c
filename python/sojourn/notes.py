"""What the user should know and need not act on."""

from __future__ import annotations


class Note(UserWarning):
    """A remark in words for a user; the command line prints it as one line."""
