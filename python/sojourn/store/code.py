"""The Python files of a store, which its workers run."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn import _core
from sojourn.files import bounded
from sojourn.files.bounded import LARGEST_TEXT
from sojourn.files.storage import why

if TYPE_CHECKING:
    from sojourn.store.plans import StoredPlan

_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def checked(plan: StoredPlan) -> list[tuple[Path, str]]:
    """The Python files of a plan with their SHA-256 in hexadecimal, after a check that they are unchanged.

    Raises ExperimentError if one differs from the plan, or another user may write to it and the plan is not trusted.
    """
    files = [(plan.folder / name, planned) for name, planned in zip(plan.meta.own, plan.meta.own_sha256, strict=True)]
    for file, planned in files:
        try:
            found = hashlib.sha256(bounded.read_bytes(file, LARGEST_TEXT)).hexdigest()
        except OSError as error:
            raise _core.ExperimentError(f"{file}: cannot be read: {why(error)}") from None
        if found != planned:
            raise _core.ExperimentError(
                f"{file}: got SHA-256 {found[:12]}…; must be {planned[:12]}…, that of the file that was planned"
            )
    if files and not plan.trusted:
        # Who may write to a folder may replace what is in it.
        for path in (plan.store, plan.store / "plans", plan.folder, *(file for file, _ in files)):
            _refuse_others(path)
    return files


def _refuse_others(path: Path) -> None:
    status = path.stat()
    if sys.platform == "win32":
        others = "may be written to by others (this system's rights are not read)"
    elif status.st_uid not in (0, os.geteuid()):
        others = f"belongs to user {status.st_uid}"
    elif status.st_mode & _OTHERS:
        others = f"may be written to by others (mode {stat.S_IMODE(status.st_mode):o})"
    else:
        return
    raise _core.ExperimentError(
        f"{path}: {others}, and the sweep has Python code, which a worker would run: chmod go-w, or --trust"
    )
