"""Locks of open files, which end with the process that has them."""

from __future__ import annotations

import sys


def take(number: int, *, wait: bool = False) -> bool:
    """Locks an open file, by its descriptor, against other processes, and against this one if it opens the file again.

    Closing the descriptor unlocks it. With ``wait``, waits until another that has the lock unlocks it. Returns whether
    it is locked; a file system without locks refuses nobody.
    """
    if sys.platform == "win32":
        import msvcrt

        while True:
            try:
                msvcrt.locking(number, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return True
            except OSError:  # With LK_LOCK after ten seconds.
                if not wait:
                    return False
    else:
        import fcntl

        try:
            fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True
