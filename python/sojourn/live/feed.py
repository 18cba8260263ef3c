"""The samples of a run as they come, for any number of readers, and the way back by which keys are changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec

from sojourn._core import ExperimentError

KEPT = 3000
"""Events that a reader who comes late still gets."""


class Feed:
    """What happens in a run. An event is ``{"sample": ...}``, ``{"set": [key, value]}`` or ``{"end": true}``."""

    def __init__(self, about: dict[str, Any]) -> None:
        self.about = about
        """What a page shows of the run before anything has happened."""
        self.setter: Callable[[str, str], None] | None = None
        """Changes a key, or raises ``ExperimentError``. The backend puts it here while the run goes on."""
        self._events: list[dict[str, Any]] = []
        self._forgotten = 0
        self._changed = threading.Condition()

    def add(self, event: dict[str, Any]) -> None:
        """Tells all readers of an event."""
        with self._changed:
            # Numbers that are none become null, as JSON has it.
            self._events.append(msgspec.json.decode(msgspec.json.encode(event)))
            if len(self._events) > 2 * KEPT:
                self._forgotten += KEPT
                del self._events[:KEPT]
            self._changed.notify_all()

    def after(self, number: int, wait_s: float) -> tuple[int, list[dict[str, Any]]]:
        """The events from a number on, of which some may be forgotten, and the number after them.

        Without any, waits for one, but not longer than ``wait_s``.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._forgotten + len(self._events) > number, wait_s)
            return self._forgotten + len(self._events), self._events[max(number - self._forgotten, 0) :]

    def set(self, key: str, value: str) -> None:
        """Changes a key of the run, written as in a file, and tells all readers.

        Raises ExperimentError if the run does not accept it, or has ended.
        """
        if self.setter is None:
            raise ExperimentError("the run is not going on")
        self.setter(key, value)
        self.add({"set": [key, value]})
