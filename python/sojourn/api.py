"""Runs experiments from Python; the command line uses the same functions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sojourn import _core
from sojourn.frame.results import Results
from sojourn.runs.backends import Backend, backend_of
from sojourn.runs.execution import Report
from sojourn.runs.executors import MakeExecutor, executor_of
from sojourn.runs.plan import compare_plan, override_pairs, read_plan
from sojourn.runs.precision import Precision, Rounds
from sojourn.store.runner import Runner


def run(
    file: str | Path,
    *,
    set: Mapping[str, object] | None = None,
    jobs: int | None = None,
    backend: str | Backend = "sim",
    executor: str | MakeExecutor = "threads",
    until: str | None = None,
    report: Report | None = None,
) -> Results:
    """Runs an experiment file.

    Parameters
    ----------
    file
        The experiment, a TOML file.
    set
        Values that override those in the file, by dotted key: ``{"queue.0.target": "10 ms"}``.
    jobs
        Number of parallel runs; default: one per processor. Results do not depend on it.
    backend
        ``"sim"``, ``"linux"``, or ``Linux(on=…, kernel=…)``.
    executor
        Where to make the runs: ``"threads"``; ``"processes"``, in which disciplines in Python run in parallel; or a
        function that returns an ``Executor``, given a backend and a number of workers.
    until
        ``"goodput_bps=2%"``: stop repeating a cell of the sweep as soon as, for each of its queues, the 95 % interval
        of this metric's mean is within this share of the mean. The file's ``repeat`` is then the maximum.
    report
        Called about ten times a second with the progress so far.

    Raises
    ------
    ExperimentError
        The file has an error; the message names file, line, key, the given value and the accepted values.
    RunError
        A run failed.
    """
    plan = read_plan(file, override_pairs(set or {}), backend=backend)
    rounds = None if until is None else Rounds(plan, Precision.parse(until))
    return Runner(backend_of(backend), executor_of(executor), jobs, report=report).results(plan, rounds)


def run_text(
    text: str,
    *,
    name: str = "experiment",
    set: Mapping[str, object] | None = None,
    jobs: int | None = None,
    report: Report | None = None,
) -> Results:
    """Runs an experiment given as TOML text; otherwise like ``run``. ``name`` replaces the file name in messages."""
    plan = _core.Plan.read_text(text, name, override_pairs(set or {}))
    return Runner(jobs=jobs, report=report).results(plan)


def compare(
    *queues: str,
    rate: str,
    rtt: str,
    flows: int = 1,
    tcp: str = "cubic",
    ecn: bool = False,
    buffer: str = "1000 packets",
    duration: str = "30 s",
    warmup: str = "0 s",
    repeat: int = 1,
    seed: int = 1,
    jobs: int | None = None,
    report: Report | None = None,
) -> Results:
    """Runs the same bulk TCP flows through several queue disciplines.

    Parameters
    ----------
    queues
        Disciplines by name, with parameters after a colon: ``"codel:target=10ms,interval=50ms"``.
    rate, rtt
        Of the bottleneck and of all flows: ``"10 Mbit/s"`` (or ``"10mbit"``), ``"100 ms"``.
    flows, tcp, ecn
        Bulk flows that start within the first 100 ms, their congestion control, and whether flows and queues use ECN.
    buffer
        Limit of every queue: ``"1000 packets"``, ``"150 kB"``, ``"1 bdp"``.
    duration, warmup
        Duration of a run, and its first part that the statistics omit.
    repeat, seed
        Runs per queue, with seeds ``seed``, ``seed + 1``, …
    jobs, report
        As in ``run``.

    Raises
    ------
    ExperimentError
        A name or value is not accepted.
    """
    plan = compare_plan(
        queues,
        rate=rate,
        rtt=rtt,
        flows=flows,
        tcp=tcp,
        ecn=ecn,
        buffer=buffer,
        duration=duration,
        warmup=warmup,
        repeat=repeat,
        seed=seed,
    )
    return Runner(jobs=jobs, report=report).results(plan)
