"""Executors, which make a batch of runs in threads of this process, in other processes, or on the workers of Dask."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sojourn import _core
from sojourn.files.interrupts import Presses
from sojourn.files.typed import must_be
from sojourn.frame.later import ctypes, futures, multiprocessing, np, npt
from sojourn.frame.results import RECORDED
from sojourn.runs import user_aqm
from sojourn.runs.backends import Backend, Simulator, backend_of

POLL_S = 0.1
"""Interval of progress reports, and of checks for a Ctrl-C and for threads that are to end, in seconds."""
CALM_S = 0.3
"""Time for a cancelled run to end by itself, before an exception is raised in it."""
PATIENCE_S = 1.2
"""Total time for it to end. Then its thread is abandoned: its Python code may never return."""
TOGETHER = 80_000.0
"""Effort of the runs that a thread makes before Python sees them, some 10 ms: a switch takes as long as a short run."""
AHEAD = 128
"""Most short runs per thread that are started."""

if TYPE_CHECKING:
    Columns = dict[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class FinishedRun:
    """The results of a run in another process, as those of ``_core.Run``."""

    summary_json: str
    tables: dict[str, Columns]
    named: dict[str, bytes]

    def table(self, name: str) -> Columns | None:
        """The recorded table of this name; None if it was not recorded."""
        return self.tables.get(name)

    def files(self) -> dict[str, bytes]:
        """The packet capture and the qlogs by their names."""
        return self.named


CoreRun = _core.Run | FinishedRun
"""The results of a run. Its tables and files are returned only once."""
Outcome = CoreRun | BaseException


class Executor(Protocol):
    """Makes several runs in parallel. Outcomes come in any order."""

    @property
    def workers(self) -> int:
        """Number of parallel runs."""

    @property
    def ahead(self) -> int:
        """Most runs per worker that are started: twice as many as are made at once, so that none waits for the next."""

    def start(self, index: int, spec: _core.RunSpec) -> None:
        """Starts a run; ``index`` identifies its outcome."""

    def ended(self, wait_s: float) -> Iterator[tuple[int, Outcome]]:
        """Returns the outcomes since the last call. Waits at most ``wait_s`` for the first."""

    def simulated_s(self) -> dict[int, float]:
        """Simulated seconds of the runs in progress, by index, as far as known."""

    def close(self, presses: Presses) -> None:
        """Cancels the runs in progress and waits for them; another Ctrl-C ends the wait if possible."""


MakeExecutor = Callable[[Backend, int], Executor]
"""Returns an executor for a batch, given the backend and the number of parallel runs."""


def executor_of(executor: str | MakeExecutor) -> MakeExecutor:
    """The executor ``threads`` or ``processes``, or the given one. Raises ExperimentError for another name."""
    if not isinstance(executor, str):
        return executor
    known: dict[str, MakeExecutor] = {"threads": Threads, "processes": Processes}
    must_be(executor, known, "executor")
    return known[executor]


def default_workers() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Threads:
    """Threads of this process: the simulator runs without the GIL. Disciplines in Python do not run in parallel."""

    def __init__(self, backend: Backend, workers: int) -> None:
        self.workers = workers
        self._backend = backend
        self._monitors: dict[int, _core.Monitor] = {}
        """The runs started that have not ended."""
        # Runs with algorithms in Python have no use for it, and may end the process: finished ones are kept at once.
        self._batches = type(backend) is Simulator and not any(user_aqm.registered())
        self.ahead = AHEAD if self._batches else 2
        self._stopping = False
        self._todo: queue.SimpleQueue[tuple[int, _core.RunSpec] | None] = queue.SimpleQueue()
        self._ended: queue.SimpleQueue[list[tuple[int, Outcome]]] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def start(self, index: int, spec: _core.RunSpec) -> None:
        """Starts a run."""
        self._monitors[index] = _core.Monitor()
        self._todo.put((index, spec))
        if len(self._threads) < self.workers:
            # A daemon thread, so that Python code that hangs does not keep the process from ending.
            name = f"sojourn_{len(self._threads)}"
            self._threads.append(threading.Thread(target=self._work, name=name, daemon=True))
            self._threads[-1].start()

    def ended(self, wait_s: float) -> Iterator[tuple[int, Outcome]]:
        """Returns the outcomes since the last call."""
        with contextlib.suppress(queue.Empty):
            ended = self._ended.get(timeout=wait_s)
            while True:
                for index, outcome in ended:
                    del self._monitors[index]
                    yield index, outcome
                ended = self._ended.get_nowait()

    def simulated_s(self) -> dict[int, float]:
        """Simulated seconds of the runs in progress, by index."""
        return {index: monitor.simulated_s for index, monitor in list(self._monitors.items())}

    def close(self, presses: Presses) -> None:
        """Cancels the runs in progress and waits for them.

        Raises an exception in Python code that does not end; if this has no effect, abandons its thread.
        """
        self._stopping = True
        for monitor in self._monitors.values():
            monitor.cancel()
        for _ in self._threads:
            self._todo.put(None)
        began = time.monotonic()
        asked = len(presses)
        # A backend with processes and devices would leave them behind.
        can_be_left = self._backend.name == "sim"
        while alive := [thread for thread in self._threads if thread.is_alive()]:
            waited_s = time.monotonic() - began
            if can_be_left and (waited_s > PATIENCE_S or len(presses) > asked):
                _left.extend(alive)
                break
            if can_be_left and waited_s > CALM_S:
                # At the next instruction of their Python code.
                for thread in alive:
                    number, raised = ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_Abandoned)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, raised)
            alive[0].join(POLL_S)

    def _work(self) -> None:
        with contextlib.suppress(_Abandoned):
            while some := self._next():
                runs = [(spec, self._monitors[index]) for index, spec in some]
                try:
                    made: Sequence[Outcome] = _core.run_each(runs) if self._batches else [self._backend.run(*runs[0])]
                except BaseException as error:
                    made = [error]
                self._ended.put([(index, outcome) for (index, _), outcome in zip(some, made, strict=True)])

    def _next(self) -> list[tuple[int, _core.RunSpec]]:
        """The runs that a thread makes next, several if they are short; none at the end."""
        some: list[tuple[int, _core.RunSpec]] = []
        effort = 0.0
        # Half of the thread's share of what waits, so that all threads end at about the same time.
        while not some or (
            self._batches and effort < TOGETHER and len(some) <= self._todo.qsize() // (2 * self.workers)
        ):
            if self._stopping or (todo := self._todo.get()) is None:
                break
            some.append(todo)
            effort += todo[1].effort
        return [] if self._stopping else some


class _Abandoned(KeyboardInterrupt):
    """Raised in Python code that does not end by itself, to end its thread."""


_left: list[threading.Thread] = []
"""The abandoned threads."""


def left_behind() -> bool:
    """True if abandoned threads are still alive: the process then ends without waiting for them."""
    return any(thread.is_alive() for thread in _left)


class Processes:
    """Other processes, in which disciplines written in Python run in parallel.

    A class that a run uses must be in a module that can be imported, unless a file registered it (``user_aqm.load``).
    """

    ahead = 2

    def __init__(self, backend: Backend, workers: int) -> None:
        """Raises ExperimentError for a backend that starts processes itself."""
        if backend.name != "sim":
            raise _core.ExperimentError(
                f'executor: got "processes"; runs on {backend.name} are separate processes already: must be "threads"'
            )
        self.workers = workers
        known = user_aqm.registered()
        # Not those of a function or a notebook.
        sent = known._replace(classes=tuple(one for one in known.classes if user_aqm.is_importable(one[1].cls)))
        self._here_alone = {name for name, _ in known.classes} - {name for name, _ in sent.classes}
        self._pool: Any = futures.ProcessPoolExecutor(
            workers,
            # Unlike a fork it does not copy locks held by our threads.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(backend, sent),
        )
        self._running: dict[futures.Future[FinishedRun], int] = {}

    def start(self, index: int, spec: _core.RunSpec) -> None:
        """Starts a run. Raises ExperimentError if it uses a class that the processes cannot import."""
        used = json.loads(spec.document).get("own", {}) if self._here_alone else {}
        for name in sorted(self._here_alone.intersection(used)):
            raise _core.ExperimentError(
                f'executor: got "processes", which cannot import the class of "{name}"; must be "threads", '
                "or the class in a file for --load, or in a module"
            )
        with _without_signals():
            self._running[self._pool.submit(_run, spec)] = index

    def ended(self, wait_s: float) -> Iterator[tuple[int, Outcome]]:
        """Returns the outcomes since the last call."""
        done, _ = futures.wait(self._running, timeout=wait_s, return_when=futures.FIRST_COMPLETED)
        for future in sorted(done, key=self._running.__getitem__):
            index = self._running.pop(future)
            error = future.exception()
            if isinstance(error, futures.BrokenExecutor) or type(error).__name__ == "KilledWorker":
                error = _core.RunError("a worker process died, or could not be started")
            yield index, future.result() if error is None else error

    def simulated_s(self) -> dict[int, float]:
        """Not known before a run has ended."""
        return {}

    def close(self, presses: Presses) -> None:
        """Ends the processes and their runs."""
        for future in self._running:
            future.cancel()
        if any(not future.done() for future in self._running):
            for worker in list((self._pool._processes or {}).values()):
                worker.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)


class Dask(Processes):
    """The workers of a Dask scheduler. ``files``, which they can read, register the disciplines that runs use."""

    def __init__(self, address: str, files: Iterable[Path]) -> None:
        """Raises ExperimentError if dask is not installed, or there is no scheduler at the address."""
        try:
            # The package has no type annotations.
            distributed: Any = importlib.import_module("distributed")
        except ImportError:
            raise _core.ExperimentError("--dask: needs the package distributed: pip install distributed") from None
        try:
            self._client = distributed.Client(address, timeout="10s")
        except (OSError, ValueError, TimeoutError) as error:
            why = " ".join(str(error).split())
            raise _core.ExperimentError(f'--dask: got "{address}"; must be the address of a scheduler: {why}') from None
        self._files = tuple(map(str, files))
        # Dask gives the runs of a dead worker to another one.
        self._pool = self._client.get_executor(pure=False, retries=3)
        self._running = {}
        self.workers = 1

    def start(self, index: int, spec: _core.RunSpec) -> None:
        """Starts a run."""
        self._running[self._pool.submit(_run_there, spec.document, self._files)] = index

    def ended(self, wait_s: float) -> Iterator[tuple[int, Outcome]]:
        """Returns the outcomes since the last call; workers may have come meanwhile."""
        try:
            yield from super().ended(wait_s)
        except futures.CancelledError:
            raise ConnectionError("--dask: the scheduler has ended") from None
        if self._running:
            self.workers = sum(self._client.nthreads().values()) or 1

    def close(self, presses: Presses) -> None:
        """Cancels the runs that no worker has begun."""
        done = [future for future in self._running if future.done() and not future.cancelled()]
        self._running = {future: self._running[future] for future in done}
        self._pool.shutdown(wait=False)
        self._client.close()


_backend: Backend
"""In a worker process: the backend of its runs."""


@contextlib.contextmanager
def _without_signals() -> Iterator[None]:
    """Blocks the signals of a terminal in processes that are started here: this process ends them."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP, signal.SIGQUIT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(backend: Backend, registered: user_aqm.Registered) -> None:
    global _backend
    for file in registered.files:
        user_aqm.load(Path(file))
    for name, (kind, cls) in registered.classes:
        user_aqm.register(kind, name, cls)
    _backend = backend


def _run(spec: _core.RunSpec) -> FinishedRun:
    core = _backend.run(spec, _core.Monitor())
    tables: dict[str, Columns] = {name: columns for name in RECORDED if (columns := core.table(name)) is not None}
    return FinishedRun(core.summary_json, tables, core.files())


_beginning = threading.Lock()


@lru_cache(maxsize=1)
def _begin_there(files: tuple[str, ...]) -> None:
    _begin(backend_of("sim"), user_aqm.Registered(files, ()))


def _run_there(document: str, files: tuple[str, ...]) -> FinishedRun:
    with _beginning:  # a worker of Dask has several threads
        _begin_there(files)
    return _run(_core.RunSpec.read(document))
