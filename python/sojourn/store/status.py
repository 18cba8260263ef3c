"""The progress of a store's sweeps."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TypedDict

from sojourn import _core
from sojourn.store import files
from sojourn.store.plans import StoredPlan


class Status(TypedDict):
    """The output of ``sojourn status --json``."""

    runs: int
    done: int
    """Runs with rows, failed ones included."""
    running: int
    """Runs of batches that a worker has claimed."""
    failed: int


def status(plans: Iterable[StoredPlan]) -> Status:
    """Counts the runs of these sweeps. Raises ExperimentError if a file of theirs is damaged."""
    found: Status = {"runs": 0, "done": 0, "running": 0, "failed": 0}
    for plan in plans:
        missing = set(plan.missing())
        held = {int(name) for name in plan.claims.held() if name.isdecimal()}
        found["runs"] += plan.meta.runs
        found["done"] += plan.runs_done()
        found["running"] += sum(len(plan.indices(batch)) for batch in held & missing)
        found["failed"] += files.again(partial(_failed, plan))
    return found


def _failed(plan: StoredPlan) -> int:
    failed = 0
    for part in plan.parts():
        try:
            errors = part.read(["error"])["error"]
        except (OSError, ValueError, KeyError):
            raise _core.ExperimentError(f"status: {part.damage}") from None
        failed += len(errors) - errors.null_count
    return failed
