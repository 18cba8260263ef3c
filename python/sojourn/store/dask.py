"""Executes a sweep on the workers of a Dask scheduler, which must share the store's folder."""

from __future__ import annotations

import importlib
import time
from typing import Any

from sojourn import _core
from sojourn.files import interrupts
from sojourn.runs.execution import Report
from sojourn.store.plans import StoredPlan
from sojourn.store.work import Remaining, compact, make_batch


def work(plan: StoredPlan, address: str, *, report: Report | None = None) -> BaseException | None:
    """As ``sojourn.store.work.work``, on the workers of a scheduler.

    Raises ExperimentError if dask is not installed, or there is no scheduler at the address.
    """
    try:
        # The package has no type annotations.
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise _core.ExperimentError("--dask: needs the package distributed: pip install distributed") from None
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError, TimeoutError) as error:
        reason = " ".join(str(error).split())
        raise _core.ExperimentError(f'--dask: got "{address}"; must be the address of a scheduler: {reason}') from None
    began, remaining = time.monotonic(), Remaining(plan)
    stopped_by: BaseException | None = None
    with client, interrupts.held() as presses:
        # Dask gives the batch of a dead worker to another one, which waits until the claim expires.
        asked = {
            client.submit(make_batch, str(plan.store), plan.id, batch, plan.trusted, pure=False, retries=3): batch
            for batch in plan.missing()
        }
        left = set(asked)
        while left:
            ended = {future for future in left if future.done()}
            left -= ended
            failed = next((future.exception() for future in ended if future.status == "error"), None)
            stopped_by = KeyboardInterrupt() if presses else failed
            if report is not None:
                report(remaining.progress(0.0, time.monotonic() - began))
            if stopped_by is not None:
                client.cancel(list(left), force=True)
                break
            time.sleep(0.1)
    if stopped_by is None:
        compact(plan)
    return stopped_by
