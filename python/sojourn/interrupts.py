"""Ctrl-C as a counter instead of an exception, so that no file is left half-written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Presses:
    """How many times the user has asked to stop."""

    def __init__(self) -> None:
        self.count = 0

    def __bool__(self) -> bool:
        return self.count > 0


@contextmanager
def held() -> Iterator[Presses]:
    """Counts Ctrl-C, and any other signal that Python handles as one, instead of raising KeyboardInterrupt.

    Threads other than the main one get no signals.
    """
    presses = Presses()

    def count(*_: object) -> None:
        presses.count += 1

    previous: dict[signal.Signals, Callable[..., object]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                previous[number] = handler
                signal.signal(number, count)
    try:
        yield presses
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
