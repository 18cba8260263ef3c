"""Requests to stop: Ctrl-C, and other signals like it, as a counter instead of an exception.

So no file is left half-written.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""The signals that ask a command to stop: of the user, a supervisor, a terminal that is closed."""

_received: list[int] = []


def received(number: int) -> None:
    """Remembers a signal that asked to stop."""
    _received.append(number)


def exit_status() -> int:
    """The exit status after a request to stop: 128 and the number of the first signal, 130 for Ctrl-C."""
    return 128 + (_received[0] if _received else signal.SIGINT)


class Presses:
    """How many times the user has asked to stop."""

    def __init__(self) -> None:
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0


@contextmanager
def held() -> Iterator[Presses]:
    """Counts Ctrl-C, and other such signals, instead of raising KeyboardInterrupt. Only in the main thread."""
    presses = Presses()

    def count(number: int, _: object) -> None:
        received(number)
        presses.count += 1

    previous: dict[signal.Signals, Callable[..., object]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                previous[number] = handler
                signal.signal(number, count)
    try:
        yield presses
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
