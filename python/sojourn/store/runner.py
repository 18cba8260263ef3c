"""Makes lists of runs for commands: on a backend, by an executor, and through a store if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sojourn import _core
from sojourn.files import interrupts
from sojourn.frame.results import Results, Run
from sojourn.runs.backends import Backend, Simulator
from sojourn.runs.execution import Report, execute, make_runs, named
from sojourn.runs.executors import MakeExecutor, Threads, default_workers
from sojourn.runs.precision import Rounds
from sojourn.store import Store
from sojourn.store.batches import Batches, compact, known_runs
from sojourn.store.journal import backend_key
from sojourn.store.planning import batch_of, mend
from sojourn.store.plans import RunList, StoredPlan, check_writable
from sojourn.store.stored import runs_of


@dataclass(frozen=True)
class Finished:
    """What becomes of the runs of a plan as they finish."""

    keep: Callable[[Run], Run] = lambda run: run
    """Called with each run as soon as it and those before it are finished; its return value replaces the run."""
    known: Mapping[int, Run] = field(default_factory=dict)
    """Finished runs by index, which are not repeated."""
    made: Callable[[int, Run], None] = lambda index, run: None
    """Gets each other run as soon as it is finished."""


AS_THEY_ARE = Finished()


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
        self, plan: _core.Plan, finished: Finished = AS_THEY_ARE, *, rounds: Rounds | None = None
    ) -> tuple[Results, BaseException | None]:
        """Runs a plan. Returns its results and the reason for an early stop, if any: the results are then partial.

        With ``rounds`` it makes only as many repeats as necessary; the plan's number is the maximum.
        """
        runs: list[Run] = []
        planned = 0
        stopped_by = None
        for indices in rounds or [range(len(plan))]:

            def take(number: int, run: Run, indices: Sequence[int] = indices) -> None:
                runs.append(finished.keep(run))
                if rounds is not None:
                    rounds.take(indices[number], run)

            def made(number: int, run: Run, indices: Sequence[int] = indices) -> None:
                finished.made(indices[number], run)

            planned += len(indices)
            name = plan.name if rounds is None else f"{plan.name}, round {rounds.number}"
            there = {number: finished.known[at] for number, at in enumerate(indices) if at in finished.known}
            stopped_by = self.run(name, [plan[index] for index in indices], take, made=made, known=there)
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
        take: Callable[[int, Run], None],
        *,
        made: Callable[[int, Run], None] = lambda index, run: None,
        known: Mapping[int, Run] = {},
    ) -> BaseException | None:
        """Makes all runs and passes each to ``take`` with its index, in order; arguments as of ``execution.execute``.

        A store keeps the runs under the ``name``; raises ExperimentError if it cannot. Returns why runs are missing.
        """
        missing = [index for index in range(len(specs)) if index not in known]
        if self.store is None:
            on = self.executor(self.backend, self.workers(len(missing)))
            return execute(specs, take, executor=on, made=made, report=self.report, known=known)
        stored, stopped_by = self.stored(self.store, name, [specs[index] for index in missing])
        runs = {**known, **{missing[number]: run for number, run in stored.items()}}
        for index in sorted(runs):
            if index not in known:
                made(index, runs[index])
            take(index, runs[index])
        return stopped_by

    def stored(
        self, store: Store, name: str, specs: Sequence[_core.RunSpec]
    ) -> tuple[dict[int, Run], BaseException | None]:
        """Makes the runs of a list that a store lacks, and reads all of them. Other workers of the store may help.

        Returns the runs by index, and why some are missing. Raises ExperimentError if a run cannot be stored.
        """
        if not specs:
            return {}, None
        run_list = RunList.of(name, specs, backend_key(self.backend))
        if (plan := store.find(run_list)) is None:
            # Only the simulator is fast enough for several runs to be worth a batch.
            plan = store.add_list(run_list, batch_of(run_list) if self.backend.name == "sim" else 1)
        mend(plan, store.say)
        stopped_by = self.fill(store, plan)
        runs, failed = runs_of(plan)
        if stopped_by is None and failed:
            stopped_by = named(_core.RunError(failed[min(failed)]), specs[min(failed)])
        return runs, stopped_by

    def fill(
        self, store: Store, plan: StoredPlan, *, wait: bool = True, count: Callable[[int], None] | None = None
    ) -> BaseException | None:
        """Makes the runs that a plan of a store lacks, but for those that its other plans have; merges its files.

        ``wait`` is as for ``Batches``. ``count`` is called at the end with the number of runs made here. Returns why
        runs are missing: a KeyboardInterrupt, or the OSError of a failed write. Raises ExperimentError if the store
        cannot be written to.
        """
        if not plan.missing():
            return None
        check_writable(store.path)
        known = known_runs(other for other in store.plans() if other.id != plan.id)
        stopped_by: BaseException | None = None
        with interrupts.held() as presses, Batches(plan, known, presses, wait=wait) as batches:
            try:
                on = self.executor(self.backend, self.workers(plan.meta.runs))
                if make_runs(batches, on, presses, self.report):
                    stopped_by = KeyboardInterrupt()
            except OSError as error:
                stopped_by = error
        if count is not None:
            count(batches.runs)
        if stopped_by is None:
            compact(plan)
        return stopped_by

    def workers(self, runs: int) -> int:
        """How many of so many runs are made in parallel."""
        return min(self.jobs or default_workers(), runs) or 1
