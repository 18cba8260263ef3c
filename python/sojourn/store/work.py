"""Executes the runs of a store's sweeps, batch by batch, until none is left."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from sojourn import _core, interrupts
from sojourn.execution import Progress, Report, as_run
from sojourn.results import RECORDED
from sojourn.store import files
from sojourn.store.files import Part
from sojourn.store.plans import Store, StoredPlan
from sojourn.store.rows import Made, table_of
from sojourn.store.stored import CAPTURE, known_run, recorded

if TYPE_CHECKING:
    import pyarrow as pa

POLL_S = 0.1
"""Interval of progress reports and of checks for a Ctrl-C."""
LOOK_S = 1.0
"""Interval at which a worker checks the store again while others hold all remaining batches."""
GOLDEN = (5**0.5 - 1) / 2
"""Any first few multiples of the golden ratio are spread evenly between two whole numbers."""
EXACT = 20_000
"""The runs up to which a progress report knows the effort of each. Beyond, a batch counts as runs like its first."""
FILES = "compact"
"""The claim of the process that removes files of rows."""
PART_RUNS = 1 << 14
"""Runs per file of a finished sweep: few large files read faster than many small ones."""


def work(
    plan: StoredPlan,
    known: Known | None = None,
    *,
    jobs: int,
    report: Report | None = None,
    wait: bool = True,
    count: Callable[[int], None] | None = None,
) -> BaseException | None:
    """Executes the missing runs of a sweep, and merges its files once all runs are done.

    Parameters
    ----------
    known
        Runs of other sweeps by hash; they are not repeated.
    jobs
        The number of parallel runs.
    wait
        Whether to wait while others execute the rest, and to take over if they die.
    count
        Called at the end with the number of runs executed here.

    Returns
    -------
    BaseException or None
        Why runs are missing: a KeyboardInterrupt, or the OSError of a failed write.
    """
    ahead = Ahead(plan)
    crew = _Crew(Batches(plan, known or {}), jobs, wait=wait)
    began = time.monotonic()
    stopped_by: BaseException | None = None
    with interrupts.held() as presses:
        try:
            while crew.is_at_work():
                if report is not None:
                    report(ahead.progress(crew.batches.unfinished, time.monotonic() - began))
                if presses:
                    stopped_by = KeyboardInterrupt()
                    break
                time.sleep(POLL_S)
        finally:
            crew.stop()
    if count is not None:
        count(crew.batches.runs)
    stopped_by = stopped_by or crew.failed
    if stopped_by is None:
        compact(plan)
    return stopped_by


class Ahead:
    """The work that was missing at first, for progress reports: they count what all workers have done since."""

    def __init__(self, plan: StoredPlan) -> None:
        self._plan = plan
        missing = plan.missing()
        self._effort = {
            batch: self.effort(batch, exactly=len(missing) * plan.meta.batch_runs <= EXACT) for batch in missing
        }
        self._all = sum(self._effort.values())
        self._left = set(missing)
        self._left_effort = self._all
        self._runs = plan.meta.runs - self._runs_left()
        self._next_look_s = POLL_S
        self._fraction = 0.0

    def _runs_left(self) -> int:
        return sum(len(self._plan.places(batch)) for batch in self._left)

    def effort(self, batch: int, *, exactly: bool = True) -> float:
        """The batch's effort; otherwise estimated from its first run."""
        places = self._plan.places(batch)
        if exactly:
            return sum(self._effort_of(place) for place in places)
        return len(places) * self._effort_of(places[0])

    def _effort_of(self, place: int) -> float:
        try:
            return self._plan.sweep[place].effort
        except _core.ExperimentError:
            # An invalid combination of values costs nothing.
            return 0.0

    def progress(self, unfinished: float, elapsed_s: float) -> Progress:
        """The progress after ``elapsed_s``, with this effort made in batches that are not finished."""
        if elapsed_s >= self._next_look_s:
            began = time.monotonic()
            self._left.intersection_update(self._plan.missing())
            self._left_effort = sum(self._effort[batch] for batch in self._left)
            self._runs = self._plan.meta.runs - self._runs_left()
            # In a store of many files a look takes long; it may take a five-hundredth of the time.
            self._next_look_s = elapsed_s + max(POLL_S, 500.0 * (time.monotonic() - began))
        fraction = min(1.0 - (self._left_effort - unfinished) / self._all, 1.0) if self._all else 1.0
        # A batch that has just been finished may still be among those left.
        self._fraction = max(self._fraction, fraction)
        return Progress(self._runs, self._plan.meta.runs, self._fraction, elapsed_s)


def make_batch(store: str, plan: str, batch: int, trusted: bool) -> None:
    """Executes a batch; waits if another worker has claimed it, and takes over if that worker dies."""
    batches = _batches(store, plan, trusted)
    while not batches.is_done(batch) and not batches.try_to_make(batch):
        time.sleep(LOOK_S)


@lru_cache(maxsize=4)
def _batches(store: str, plan: str, trusted: bool) -> Batches:
    kept = Store(store, trusted=trusted)
    found = kept.get(plan)
    return Batches(found, index(other for other in kept.plans() if other.id != found.id))


def compact(plan: StoredPlan) -> None:
    """Merges the rows of a finished sweep into few files. They are identical whichever workers executed the sweep."""
    import pyarrow as pa

    with plan.claims.hold(FILES) as is_ours:
        if not is_ours or plan.missing():
            return
        parts = plan.parts()
        smaller: list[Part] = []
        # Only a process that has taken over an expired claim removes files here.
        with contextlib.suppress(files.Gone):
            for first in range(0, plan.meta.runs, PART_RUNS):
                last = min(first + PART_RUNS, plan.meta.runs) - 1
                own = [part for part in parts if first <= part.first and part.last <= last]
                if len(own) > 1 and all(part.is_whole for part in own):
                    table = pa.concat_tables([part.read() for part in own], promote_options="permissive")
                    files.write_part(plan.results, first, last, table.combine_chunks())
                    smaller += own
        files.remove(smaller)


Known = dict[str, tuple[StoredPlan, Part]]
"""By run hash: the plan and the file of the run."""


def index(plans: Iterable[StoredPlan]) -> Known:
    """The finished runs of these plans."""
    known: Known = {}
    for plan in plans:
        known |= files.again(partial(_of_plan, plan))
    return known


def _of_plan(plan: StoredPlan) -> Known:
    known: Known = {}
    for part in plan.parts():
        if not part.is_whole:
            continue
        with contextlib.suppress(OSError, ValueError):
            table = part.read(["hash", "error"])
            made = table.filter(table["error"].is_null())
            known |= dict.fromkeys(made["hash"].to_pylist(), (plan, part))
    return known


class Batches:
    """The batches of a sweep, for execution by any number of threads."""

    def __init__(self, plan: StoredPlan, known: Known) -> None:
        self.plan = plan
        self.runs = 0
        """Runs of the batches executed here."""
        self._effort = 0.0
        """The effort of the runs that have ended in unfinished batches."""
        self._known = known
        self._sweep = plan.sweep
        self._lock = threading.Lock()
        self._running: dict[_core.Monitor, _core.RunSpec] = {}
        self._cancelled = False

    def is_done(self, batch: int) -> bool:
        """Whether the batch has its rows."""
        places = self.plan.places(batch)
        return any(part.first <= places[0] and places[-1] <= part.last for part in self.plan.parts())

    def try_to_make(self, batch: int) -> bool:
        """Claims and executes a batch. False if another worker has the claim.

        Raises
        ------
        Cancelled
            ``cancel`` was called.
        OSError
            Its rows cannot be written.
        """
        with self.plan.claims.hold(str(batch)) as is_ours:
            # Another worker may have finished it since we looked.
            if is_ours and not self.is_done(batch):
                places = self.plan.places(batch)
                made = [self._make(place) for place in places]
                self._write_recorded(places, made)
                files.write_part(self.plan.results, places[0], places[-1], table_of(self.plan.id, made))
                with self._lock:
                    self.runs += len(made)
                    self._effort -= sum(one.spec.effort for one in made if one.spec is not None)
            return is_ours

    @property
    def unfinished(self) -> float:
        """The effort made here in batches that are not finished."""
        with self._lock:
            parts = (spec.effort * monitor.simulated_s / spec.duration_s for monitor, spec in self._running.items())
            return max(self._effort + sum(parts), 0.0)

    def cancel(self) -> None:
        """Cancels the current runs. Unfinished batches are left to other workers."""
        with self._lock:
            self._cancelled = True
            for monitor in self._running:
                monitor.cancel()

    def _make(self, place: int) -> Made:
        monitor = _core.Monitor()
        with self._lock:
            if self._cancelled:
                raise _core.Cancelled("cancelled")
            try:
                spec = self._sweep[place]
            except _core.ExperimentError as error:
                return Made(place, None, None, str(error))
            self._running[monitor] = spec
        try:
            return self._made(place, spec, monitor)
        finally:
            with self._lock:
                del self._running[monitor]
                self._effort += spec.effort

    def _made(self, place: int, spec: _core.RunSpec, monitor: _core.Monitor) -> Made:
        if spec.hash in self._known:
            other, part = self._known[spec.hash]
            run = known_run(other, part, spec)
            if run is not None:
                return Made(place, spec, run)
        try:
            return Made(place, spec, as_run(spec.run(monitor)))
        except _core.RunError as error:
            return Made(place, spec, None, str(error))

    def _write_recorded(self, places: range, made: list[Made]) -> None:
        """Writes the recorded tables and the captures."""
        import pyarrow as pa

        runs = {one.spec.hash: one.run for one in made if one.spec is not None and one.run is not None}
        of_batch: dict[str, dict[str, pa.Table]] = {}
        for hash_, run in runs.items():
            for name in RECORDED:
                if (table := run.read_table(name)) is not None:
                    of_batch.setdefault(name, {})[hash_] = table
            if (capture := run.capture()) is not None:
                of_batch.setdefault(CAPTURE, {})[hash_] = pa.table({"content": pa.array([capture], pa.large_binary())})
        for folder, tables in of_batch.items():
            files.write_part(self.plan.recorded / folder, places[0], places[-1], recorded(tables))


class _Crew:
    """Threads that execute one batch after another."""

    def __init__(self, batches: Batches, jobs: int, *, wait: bool) -> None:
        self.batches = batches
        self.failed: BaseException | None = None
        self._wait = wait
        self._lock = threading.Lock()
        self._left: list[int] = []
        self._looked_s = -LOOK_S
        self._busy = 0
        self._stopping = threading.Event()
        self._over = threading.Event()
        """Set once no batch is left."""
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(jobs)]
        for thread in self._threads:
            thread.start()

    def is_at_work(self) -> bool:
        """Whether a thread still executes a batch or waits for one."""
        return any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Stops the threads."""
        self._stopping.set()
        self.batches.cancel()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        try:
            while (batch := self._next()) is not None:
                self.batches.try_to_make(batch)
                with self._lock:
                    self._busy -= 1
                    if not self._busy and not self._left:
                        # This may have been the last batch, so check the store at once.
                        self._looked_s = -LOOK_S
        except _core.Cancelled:
            pass
        except BaseException as error:
            self.failed = self.failed or error
            self._stopping.set()
            self.batches.cancel()

    def _next(self) -> int | None:
        """A batch that seems unclaimed; None if no work is left."""
        plan = self.batches.plan
        while not (self._stopping.is_set() or self._over.is_set()):
            with self._lock:
                if not self._left and time.monotonic() - self._looked_s >= LOOK_S:
                    self._looked_s = time.monotonic()
                    missing = plan.missing()
                    held = plan.claims.held()
                    self._left = [batch for batch in missing if str(batch) not in held]
                    # The largest first, of those spread over the sweep, so that the first batches tell how long the
                    # rest takes. Each worker begins elsewhere, so that those that start together do not claim the same.
                    first = random.random()
                    self._left.sort(key=lambda batch: (len(plan.places(batch)), (batch * GOLDEN + first) % 1.0))
                    if not missing or not (self._left or self._wait):
                        self._over.set()
                        return None
                if self._left:
                    self._busy += 1
                    return self._left.pop()
            self._over.wait(POLL_S)
        return None
