"""The samples of a run as they come, for any number of readers, and the way back by which keys are changed.

``StatusLine`` shows them, a line a second: in the title of the terminal, or on standard error if that is no terminal.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from sojourn._core import ExperimentError

KEPT = 3000
"""Events that a reader who comes late still gets."""
_SAMPLES = 10
"""Samples of 100 ms that make a line."""
_SECONDS = 1.0
_KEEP, _RESTORE = "\033[22;2t", "\033[23;2t"
"""The terminal keeps its title, and has it back (XTWINOPS of xterm)."""


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
        """The events from a number on, but for old ones, and the number after them; waits ``wait_s`` for one."""
        with self._changed:
            self._changed.wait_for(lambda: self._forgotten + len(self._events) > number, wait_s)
            return self._forgotten + len(self._events), self._events[max(number - self._forgotten, 0) :]

    def set(self, key: str, value: str) -> None:
        """Changes a key of the run, as in a file, and tells all readers. Raises ExperimentError if it cannot."""
        if self.setter is None:
            raise ExperimentError("the run is not going on")
        self.setter(key, value)
        self.add({"set": [key, value]})


class StatusLine(Feed):
    """Hears of a run and shows it. ``queues``: their names."""

    def __init__(self, queues: Sequence[str]) -> None:
        super().__init__({})
        self._queues = queues
        self._samples: list[list[dict[str, Any]]] = []
        self._terminal: int | None = None

    def add(self, event: dict[str, Any]) -> None:
        """Takes a sample; shows a line when a second is over."""
        if "sample" not in event:
            return
        self._samples.append(event["sample"]["queues"])
        if len(self._samples) == _SAMPLES:
            self._show(", ".join(map(_described, self._queues, zip(*self._samples, strict=True))))
            self._samples.clear()

    def _show(self, line: str) -> None:
        with suppress(OSError):
            if self._terminal is None:
                print(line, file=sys.stderr, flush=True)
            else:
                os.write(self._terminal, f"\033]2;{line}\007".encode())

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Shows lines meanwhile. The program has the terminal; only its title changes."""
        if not sys.stderr.isatty():
            yield
            return
        self._terminal = sys.stderr.fileno()
        os.write(self._terminal, _KEEP.encode())
        try:
            yield
        finally:
            os.write(self._terminal, _RESTORE.encode())
            self._terminal = None


def _described(name: str, samples: Sequence[dict[str, Any]]) -> str:
    """A queue over a second."""
    packets = sum(sample["packets"] for sample in samples)
    waited = sum(sample["packets"] * (sample["sojourn_mean_ms"] or 0.0) for sample in samples)
    mbps = sum(sample["bytes"] for sample in samples) * 8 / 1e6 / _SECONDS
    last = samples[-1]
    return (
        f"{name}: {mbps:.2f} Mbit/s, {last['backlog_packets']} packets, "
        f"{waited / packets if packets else 0.0:.1f} ms, {last['dropped']} dropped"
    )
