"""The runs that a store's sweep lacks, batch by batch: ``runner`` makes them."""

from __future__ import annotations

import contextlib
import random
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from sojourn import _core
from sojourn.files import interrupts
from sojourn.frame.arrow import values_as_arrow
from sojourn.frame.later import pa
from sojourn.frame.results import RECORDED
from sojourn.runs.costs import possible
from sojourn.runs.execution import Progress
from sojourn.runs.executors import POLL_S, CoreRun
from sojourn.store import files
from sojourn.store.plans import StoredPlan
from sojourn.store.stored import RunOutcome, known_run, recorded, stacked, table_of
from sojourn.store.tablefiles import kind_of

RESCAN_S = 1.0
"""Interval at which a worker checks the store again while others hold all remaining batches."""
GOLDEN = (5**0.5 - 1) / 2
"""Any first few multiples of the golden ratio are spread evenly between two whole numbers."""
EXACT = 20_000
"""The runs up to which a progress report knows the effort of each. Beyond, a batch counts as runs like its first."""
FILES = "compact"
"""The claim of the process that removes files of rows."""
PART_RUNS = 1 << 14
"""Runs per file of a finished sweep: few large files read faster than many small ones."""


class Remaining:
    """The work that was missing at first, for progress reports: they count what all workers have done since."""

    def __init__(self, plan: StoredPlan) -> None:
        self._plan = plan
        self._left = set(plan.missing())
        exactly = len(self._left) * plan.meta.batch_runs <= EXACT
        self._effort = {batch: self.effort(batch, exactly=exactly) for batch in self._left}
        self._all = sum(self._effort.values())
        self._count()
        self._next_look_s = POLL_S
        self._fraction = 0.0

    def _count(self) -> None:
        self._left_effort = sum(self._effort[batch] for batch in self._left)
        self._done = self._plan.meta.runs - sum(len(self._plan.indices(batch)) for batch in self._left)

    def effort(self, batch: int, *, exactly: bool = True) -> float:
        """The batch's effort; otherwise estimated from its first run. Invalid combinations of values cost nothing."""
        indices = self._plan.indices(batch)
        known = indices if exactly else indices[:1]
        found = sum(spec.effort for spec in possible(self._plan.sweep.__getitem__, known))
        return found * len(indices) / len(known)

    def progress(self, unfinished: float, elapsed_s: float) -> Progress:
        """The progress after ``elapsed_s``, with this effort made in batches that are not finished."""
        if elapsed_s >= self._next_look_s:
            began = time.monotonic()
            self._left.intersection_update(self._plan.missing())
            self._count()
            # In a store of many files a look takes long; it may take a five-hundredth of the time.
            self._next_look_s = elapsed_s + max(POLL_S, 500.0 * (time.monotonic() - began))
        left = (self._left_effort - unfinished) / self._all if self._all else 0.0
        # A batch that has just been finished may still be among those left.
        self._fraction = max(self._fraction, min(1.0 - left, 1.0))
        return Progress(self._done, self._plan.meta.runs, self._fraction, elapsed_s)


def compact(plan: StoredPlan) -> None:
    """Merges the rows of a finished sweep into few files. They are identical whichever workers executed the sweep."""
    with plan.claims.hold(FILES) as is_ours:
        if not is_ours or plan.missing():
            return
        parts = plan.parts()
        smaller: list[files.Part] = []
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


Known = dict[str, tuple[StoredPlan, files.Part]]
"""By run hash: the plan and the file of the run."""


def known_runs(plans: Iterable[StoredPlan]) -> Known:
    """The finished runs of these plans."""
    known: Known = {}
    for plan in plans:
        known |= files.again(partial(_of_plan, plan))
    return known


def _of_plan(plan: StoredPlan) -> Known:
    known: Known = {}
    for part in plan.parts():
        if part.is_whole:
            table = part.read(["hash", "error"])
            made = table.filter(table["error"].is_null())
            known |= dict.fromkeys(made["hash"].to_pylist(), (plan, part))
    return known


@dataclass
class _Claimed:
    """A batch that is executed here."""

    claim: contextlib.ExitStack
    indices: range
    left: deque[int]
    """Its runs that have not been started."""
    made: dict[int, RunOutcome] = field(default_factory=dict)


class Batches:
    """The batches of a sweep, one after another, as runs to be made: each is claimed first and written at its end.

    ``known`` are runs of other sweeps by hash, which are not repeated. ``wait``: whether to wait while others execute
    the rest, and to take over if they die. Once ``stopping`` is true, no run is given any more.
    """

    def __init__(self, plan: StoredPlan, known: Known, stopping: interrupts.Presses, *, wait: bool = True) -> None:
        self.plan = plan
        self.runs = 0
        """Runs of the batches executed here."""
        self._known = known
        self._sweep = plan.sweep
        self._wait = wait
        self._stopping = stopping
        self._claimed: dict[int, _Claimed] = {}
        self._effort = 0.0
        """The effort of the runs that have ended in unfinished batches."""
        self._free: list[int] = []
        self._looked_s = -RESCAN_S
        self._all_done = False
        self._remaining: Remaining | None = None

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves unfinished batches to other workers."""
        for claimed in self._claimed.values():
            claimed.claim.close()

    @property
    def is_over(self) -> bool:
        """True once no batch is left."""
        return self._all_done and not self._claimed

    def next(self) -> tuple[int, _core.RunSpec] | None:
        """The next run of a claimed batch, or of one that can be claimed; None if there is none now."""
        while not self._stopping:
            claimed = next((one for one in self._claimed.values() if one.left), None) or self._claim()
            if claimed is None:
                return None
            index = claimed.left.popleft()
            try:
                spec = self._sweep[index]
            except _core.ExperimentError as error:
                self._add(RunOutcome(index, None, None, str(error)))
                continue
            hash_ = self.plan.run_hash(spec)
            run = known_run(*self._known[hash_], spec, hash_) if hash_ in self._known else None
            if run is None:
                return index, spec
            self._add(RunOutcome(index, spec, run))
        return None

    def end(self, index: int, spec: _core.RunSpec, outcome: CoreRun | _core.RunError) -> None:
        """Adds a run to its batch, and writes the batch if it was the last. Raises OSError if that fails."""
        run, error = (None, str(outcome)) if isinstance(outcome, _core.RunError) else (outcome, None)
        self._add(RunOutcome(index, spec, run, error))

    def progress(self, unfinished: float, elapsed_s: float) -> Progress:
        """What all workers have done since the first call."""
        if self._remaining is None:
            self._remaining = Remaining(self.plan)
        return self._remaining.progress(max(self._effort + unfinished, 0.0), elapsed_s)

    def _claim(self) -> _Claimed | None:
        """Claims a batch; None if there is none now."""
        while (batch := self._choose()) is not None:
            claim = contextlib.ExitStack()
            is_ours = claim.enter_context(self.plan.claims.hold(str(batch)))
            indices = self.plan.indices(batch)
            # Another worker may have finished it since we looked.
            if is_ours and not any(part.first <= indices[0] <= part.last for part in self.plan.parts()):
                self._claimed[batch] = _Claimed(claim, indices, deque(indices))
                return self._claimed[batch]
            claim.close()
        return None

    def _choose(self) -> int | None:
        """A batch that seems unclaimed."""
        if not self._free and not self._all_done and time.monotonic() - self._looked_s >= RESCAN_S:
            self._looked_s = time.monotonic()
            missing = [batch for batch in self.plan.missing() if batch not in self._claimed]
            held = self.plan.claims.held()
            self._free = [batch for batch in missing if str(batch) not in held]
            # Spread over the sweep, so that the first batches tell how long the rest takes. Each worker begins
            # elsewhere, so that those that start together do not claim the same.
            first = random.random()
            self._free.sort(key=lambda batch: (batch * GOLDEN + first) % 1.0)
            self._all_done = not missing or not (self._free or self._wait)
        return self._free.pop() if self._free else None

    def _add(self, made: RunOutcome) -> None:
        """Adds a run to its batch, and writes the batch if it was the last."""
        batch = self.plan.batch_of(made.index)
        claimed = self._claimed[batch]
        claimed.made[made.index] = made
        self._effort += 0.0 if made.spec is None else made.spec.effort
        if len(claimed.made) < len(claimed.indices):
            return
        whole = [claimed.made[index] for index in claimed.indices]
        self._write_recorded(claimed.indices, whole)
        files.write_part(self.plan.results, claimed.indices[0], claimed.indices[-1], table_of(self.plan, whole))
        del self._claimed[batch]
        claimed.claim.close()
        self.runs += len(whole)
        self._effort -= sum(one.spec.effort for one in whole if one.spec is not None)
        if not self._claimed and not self._free:
            # This may have been the last batch, so check the store at once.
            self._looked_s = -RESCAN_S

    def _write_recorded(self, indices: range, made: list[RunOutcome]) -> None:
        """Writes the recorded tables, captures and qlogs."""
        runs = {self.plan.run_hash(one.spec): one.run for one in made if one.spec is not None and one.run is not None}
        tables: dict[str, pa.Table] = {}
        for name in RECORDED:
            columns = {hash_: own for hash_, run in runs.items() if (own := run.table(name)) is not None}
            if columns:
                counts = {hash_: len(next(iter(own.values()))) for hash_, own in columns.items()}
                tables[name] = recorded(stacked(columns.values()), counts)
        named = [
            (kind_of(name), hash_, name, content)
            for hash_, run in runs.items()
            for name, content in run.files().items()
        ]
        for kind in dict.fromkeys(kind for kind, *_ in named):
            hashes, names, contents = zip(*(file for of, *file in named if of == kind), strict=True)
            whole = pa.table({"name": values_as_arrow(names), "content": pa.array(contents, pa.large_binary())})
            tables[kind] = recorded(whole, Counter(hashes))
        for folder, table in tables.items():
            files.write_part(self.plan.recorded / folder, indices[0], indices[-1], table)
