"""What the queues do, in a line a second: the title of the terminal, or standard error if that is no terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from sojourn.live.feed import Feed

_SAMPLES = 10
"""Samples of 100 ms that make a line."""
_SECONDS = 1.0
_KEEP, _RESTORE = "\033[22;2t", "\033[23;2t"
"""The terminal keeps its title, and has it back (XTWINOPS of xterm)."""


class Panel(Feed):
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
