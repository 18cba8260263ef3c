"""Makes lists of runs for commands: on a backend, by an executor, and through a store if there is one.

Dask's workers (``work_on_dask``) have a loop of their own, and ``sojourn serve`` makes one run at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sojourn import _core
from sojourn.frame.results import Results, Run
from sojourn.runs.backends import Backend, Simulator
from sojourn.runs.execution import Report, as_run, execute, named
from sojourn.runs.executors import MakeExecutor, Threads, default_workers
from sojourn.runs.precision import Rounds
from sojourn.store import Store
from sojourn.store.journal import Finished, backend_key
from sojourn.store.planning import batch_of_list, mend
from sojourn.store.plans import StoredPlan
from sojourn.store.run_list import RunList
from sojourn.store.stored import runs_of
from sojourn.store.work import known_besides, work

T = TypeVar("T")


@dataclass(frozen=True)
class Runner:
    """How runs are made."""

    backend: Backend = field(default_factory=Simulator)
    executor: MakeExecutor = Threads
    jobs: int | None = None
    """Number of parallel runs; default: one per processor."""
    store: Store | None = None
    """Provides runs that need not be made, and keeps the others."""
    report: Report | None = None
    """Called about ten times a second with the progress so far."""

    def run_plan(
        self,
        plan: _core.Plan,
        *,
        rounds: Rounds | None = None,
        keep: Callable[[Run], Run] | None = None,
        journal: Finished | None = None,
    ) -> tuple[Results, BaseException | None]:
        """Runs a plan. Returns its results and the reason for an early stop, if any: the results are then partial.

        With ``rounds`` it makes only as many repeats as necessary; the plan's number is the maximum.

        ``keep`` is called with each run as soon as it and those before it are finished; its return value replaces the
        run. ``journal`` receives each run as soon as it is finished; runs already in it are not repeated.
        """
        runs: list[Run] = []
        stopped_by = None
        planned = 0

        def add(index: int, run: Run) -> None:
            runs.append(run if keep is None else keep(run))
            if rounds is not None:
                rounds.take(index, runs[-1])

        for indices in rounds or [range(len(plan))]:
            planned += len(indices)
            name = plan.name if rounds is None else f"{plan.name}, round {rounds.number}"
            stopped_by = self._round(name, plan, indices, add, journal)
            if stopped_by is not None:
                break
        results = Results.of(runs, experiment=plan.name, backend=self.backend.name, resolved_json=plan.resolved_json())
        if rounds is not None:
            wanted = rounds.precision
            results.summary["until"] = {"metric": wanted.metric.name, "share": wanted.share, "missed": rounds.missed()}
        if len(runs) < planned:
            results.summary["partial"] = True
            results.summary["planned_runs"] = planned
        return results, stopped_by

    def results(self, plan: _core.Plan, rounds: Rounds | None = None) -> Results:
        """The results of a plan, as ``run_plan``. Raises RunError if a run failed, KeyboardInterrupt if interrupted."""
        results, stopped_by = self.run_plan(plan, rounds=rounds)
        if stopped_by is not None:
            raise stopped_by
        return results

    def run(
        self,
        name: str,
        specs: Sequence[_core.RunSpec],
        take: Callable[[int, T], None],
        *,
        finish: Callable[[int, Run], T],
    ) -> BaseException | None:
        """Makes all runs and passes each result to ``take`` with its index, in order, as ``execution.execute`` does.

        ``finish`` computes the result of a run, in any order. A store keeps the runs under the ``name``; raises
        ExperimentError if it cannot. Returns why results are missing.
        """
        if self.store is None:
            on = self.executor(self.backend, self.workers(len(specs)))
            return execute(
                specs, take, finish=lambda index, core: finish(index, as_run(core)), executor=on, report=self.report
            )
        runs, stopped_by = self.stored(self.store, name, specs)
        for index in sorted(runs):
            take(index, finish(index, runs[index]))
        return stopped_by

    def stored(
        self, store: Store, name: str, specs: Sequence[_core.RunSpec]
    ) -> tuple[dict[int, Run], BaseException | None]:
        """Makes the runs of a list that a store lacks, and reads all of them. Other workers of the store may help.

        Returns the finished runs by index in the list, and the reason if runs are missing. Raises ExperimentError if a
        run cannot be stored.
        """
        if not specs:
            return {}, None
        run_list = RunList.of(name, specs, backend_key(self.backend))
        if (plan := store.find(run_list)) is None:
            # Only the simulator is fast enough for several runs to be worth a batch.
            batch = batch_of_list(specs, self.workers(len(specs))) if self.backend.name == "sim" else 1
            plan = store.add_list(run_list, batch)
        mend(plan, store.say)
        stopped_by = self.fill(store, plan)
        runs, failed = runs_of(plan)
        if stopped_by is None and failed:
            stopped_by = named(_core.RunError(failed[min(failed)]), specs[min(failed)])
        return runs, stopped_by

    def fill(
        self, store: Store, plan: StoredPlan, *, wait: bool = True, count: Callable[[int], None] | None = None
    ) -> BaseException | None:
        """Makes the runs that a plan of a store lacks, as ``work``. Raises ExperimentError if it cannot be written."""
        if not plan.missing():
            return None
        store.check_writable()
        return work(
            plan,
            known_besides(store, plan),
            jobs=self.workers(plan.meta.runs),
            backend=self.backend,
            executor=self.executor,
            report=self.report,
            wait=wait,
            count=count,
        )

    def workers(self, runs: int) -> int:
        """How many of so many runs are made in parallel."""
        return min(self.jobs or default_workers(), runs) or 1

    def _round(
        self,
        name: str,
        plan: _core.Plan,
        indices: Sequence[int],
        add: Callable[[int, Run], None],
        journal: Finished | None,
    ) -> BaseException | None:
        """Makes some runs of a plan, or takes them from the journal, and adds them in order."""
        known = {} if journal is None else journal.stored
        missing = [index for index in indices if index not in known]
        order = iter(indices)

        def add_known(before: int | None = None) -> None:
            for index in order:
                if index == before:
                    return
                if index in known:
                    add(index, known.pop(index))

        def finish(number: int, run: Run) -> Run:
            if journal is not None:
                journal.add(missing[number], run)
            return run

        def take(number: int, run: Run) -> None:
            add_known(missing[number])
            add(missing[number], run)

        stopped_by = self.run(name, [plan[index] for index in missing], take, finish=finish)
        add_known()
        return stopped_by
