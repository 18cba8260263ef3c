"""Assigns batches to workers. A claim is a file that only one worker can create and that its owner keeps touching."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sojourn.files import whole

BEAT_S = 2.0
"""Interval at which a worker touches its claims."""
LEASE_S = 10.0
"""A claim expires after this time without a touch."""


class Claims:
    """The claims of a plan, in a folder that all workers share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def hold(self, name: str) -> Iterator[bool]:
        """Holds a claim within the context. Yields False if another worker has it."""
        path = self._folder / name
        owner = f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex}"
        if not self._claim(path, owner):
            yield False
            return
        ended = threading.Event()

        def touch() -> None:
            until = time.monotonic()
            while not ended.wait(max(0.0, until - time.monotonic())):
                with contextlib.suppress(OSError):
                    if path.read_text() != owner:
                        return
                    os.utime(path)
                until = time.monotonic() + BEAT_S

        beat = threading.Thread(target=touch, name=f"claim {name}", daemon=True)
        beat.start()
        try:
            yield True
        finally:
            ended.set()
            beat.join()
            # Another worker may have taken over an expired claim.
            with contextlib.suppress(OSError):
                if path.read_text() == owner:
                    path.unlink()

    def held(self) -> set[str]:
        """The names of all claims that have not expired."""
        alive = set()
        with contextlib.suppress(FileNotFoundError):
            now = self._now()
            for entry in os.scandir(self._folder):
                with contextlib.suppress(FileNotFoundError):
                    if not entry.name.startswith(".") and now - entry.stat().st_mtime < LEASE_S:
                        alive.add(entry.name)
        return alive

    def _claim(self, path: Path, owner: str) -> bool:
        self._folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if self._now() - path.stat().st_mtime < LEASE_S:
                return False
            # Several workers may find the claim expired; only one can rename it.
            dead = path.with_name(f".dead-{path.name}-{uuid.uuid4().hex}")
            path.rename(dead)
            dead.unlink()
        return whole.write_new(path, owner.encode())

    def _now(self) -> float:
        """The time by the file server's clock; by this machine's if the folder cannot be written to."""
        probe = self._folder / f".now-{uuid.uuid4().hex}"
        try:
            probe.touch()
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES):
                raise
            return time.time()
        try:
            return probe.stat().st_mtime
        finally:
            probe.unlink()
