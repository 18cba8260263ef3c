"""A sweep of 36 runs, and its store."""

from __future__ import annotations

from pathlib import Path

import pytest

from sojourn import _core
from sojourn.files.interrupts import Presses
from sojourn.runs import user_aqm
from sojourn.runs.backends import Simulator
from sojourn.runs.execution import make_runs
from sojourn.runs.executors import Threads
from sojourn.store import Store
from sojourn.store.batches import Batches
from sojourn.store.plans import StoredPlan
from sojourn.store.runner import Runner

EXPERIMENT = """
experiment = { name = "grid", duration = "2 s", repeat = 3 }
link = { rate = "4 Mbit/s" }
queue = [{ aqm = "codel" }, { aqm = "pie" }]
traffic = [{ kind = "bulk", flows = 2, rtt = "20 ms" }]
[sweep]
"link.rate" = ["2 Mbit/s", "4 Mbit/s"]
"traffic.0.flows" = [1, 2, 3]
"""
RUNS = 36


@pytest.fixture
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The sweep as a file, or that of the test's module, if it has one."""
    path = tmp_path / "grid.toml"
    path.write_text(getattr(request.module, "EXPERIMENT", EXPERIMENT))
    return path


def planned(file: Path, folder: Path, batch_runs: int = 4) -> StoredPlan:
    """A sweep in a new store, with batches of so many runs."""
    return Store.make(folder).add(file, [], _core.Sweep.read_file(str(file), []), batch_runs)


def fill(plan: StoredPlan, jobs: int = 2, *, wait: bool = True) -> BaseException | None:
    """Makes the runs of a plan."""
    return Runner(jobs=jobs).fill(Store(plan.store), plan, wait=wait)


def fill_unmerged(plan: StoredPlan) -> None:
    """Leaves a file per batch, as a worker does that is killed at the end."""
    with Batches(plan, {}, Presses()) as batches:
        assert not make_runs(batches, Threads(Simulator(), 1), Presses())


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a store's runs, by name."""
    return {path.name: path.read_bytes() for path in sorted((folder / "runs").glob("*/*.parquet"))}


@pytest.fixture(autouse=True)
def _forget_own_disciplines():
    before = dict(user_aqm._classes)
    yield
    for name in set(user_aqm._classes) - set(before):
        user_aqm.unregister_aqm(name)
