"""Runs as rows of a store's tables, one per run and queue, units in the column names; and read back from there."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from sojourn import _core, schema
from sojourn.frame.arrow import as_arrow, columns_as_arrow, numbers, values_as_arrow
from sojourn.frame.later import np, npt, pa, pq
from sojourn.frame.results import RECORDED, Results, Run
from sojourn.frame.swept import plain_settings
from sojourn.runs.execution import as_run
from sojourn.runs.executors import CoreRun, FinishedRun
from sojourn.store import files
from sojourn.store.files import Part
from sojourn.store.plans import StoredPlan
from sojourn.store.tablefiles import FILES, own_columns

if TYPE_CHECKING:
    from sojourn.runs.executors import Columns

_RUNS = b"runs"
"""The metadata key in a recorded file: its runs in order, each with its number of rows."""
REMEMBERED_BYTES = 400_000_000
"""Size of the files that stay in memory once read; claims ask for the same runs many times."""

Content = TypeVar("Content")


@dataclass(frozen=True)
class RunOutcome:
    """A finished run, or the reason why it failed."""

    index: int
    spec: _core.RunSpec | None
    """None if its combination of values is invalid."""
    run: CoreRun | None
    error: str | None = None


def table_of(plan: StoredPlan, made: Sequence[RunOutcome]) -> pa.Table:
    """The rows of runs. A failed run has one row, without figures."""
    finished = {one.index: as_run(one.run) for one in made if one.run}
    summaries = {one.index: _summary(one.run) for one in made if one.run}
    indices = {id(run): index for index, run in finished.items()}
    heads, figures = Results.of(list(finished.values()), experiment="").columns()
    of_runs: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for at, (run, head) in enumerate(heads):
        of_runs.setdefault(indices[id(run)], []).append((at, head))
    # Of each row, its place among the rows of finished runs; -1 for others.
    rows = [(one, *row) for one in made for row in of_runs.get(one.index) or [(-1, plain_settings(_settings(one)))]]
    names: dict[str, None] = {}
    for _, at, head in rows:
        names |= dict.fromkeys(head)
        if at == 0:
            names |= dict.fromkeys(figures)

    def of_specs(read: Callable[[_core.RunSpec], object]) -> list[object]:
        return [None if one.spec is None else read(one.spec) for one, _, _ in rows]

    identity: dict[str, list[object]] = {
        "hash": of_specs(plan.run_hash),
        "setup": of_specs(partial(setup_of, backend=plan.meta.backend)),
        "plan": [plan.id] * len(rows),
        "index": [one.index for one, _, _ in rows],
        "experiment": of_specs(attrgetter("name")),
        "backend": [plan.meta.backend.partition(" ")[0]] * len(rows),
        "aqm": of_specs(attrgetter("queue")),
        "label": of_specs(attrgetter("label")),
        "seed": of_specs(attrgetter("seed")),
        "error": [one.error for one, _, _ in rows],
        "summary": [summaries.get(one.index) for one, _, _ in rows],
    }
    types = {"index": pa.uint64(), "seed": pa.uint64()}
    columns = {name: values_as_arrow(values, types.get(name, pa.string())) for name, values in identity.items()}
    places = np.array([at for _, at, _ in rows])
    for name in names:
        if name in figures:
            columns[name] = _figures(np.array([*figures[name], math.nan])[places])
        else:
            columns[name] = values_as_arrow([_whole_as_float(head.get(name)) for _, _, head in rows])
    return pa.table(columns)


def _summary(run: CoreRun) -> str:
    """A run's summary without the time that it took, so that the same run gives the same row."""
    before, _, behind = run.summary_json.partition('"wall_s":')
    return before + behind.partition(",")[2]


def _settings(one: RunOutcome) -> Mapping[str, object]:
    return {} if one.spec is None else _decoded(one.spec.set_json)


@lru_cache(maxsize=64)
def _decoded(settings: str) -> Mapping[str, object]:
    found: Mapping[str, object] = json.loads(settings)
    return found


def setup_of(spec: _core.RunSpec, backend: str = "sim") -> str:
    """SHA-256, in hexadecimal, of everything that determines a run's results, except for its seed."""
    # Its keys are sorted: before this one there is no other seed.
    return _setup(spec.document.replace(f'"seed":{spec.seed},', "", 1), backend)


@lru_cache(maxsize=64)
def _setup(seedless: str, backend: str) -> str:
    document = msgspec.json.decode(seedless)
    experiment = document["experiment"]
    del document["set"], experiment["experiment"]["name"]
    for queue in experiment["queue"]:
        queue.pop("label", None)
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256((text if backend == "sim" else f"{backend}\n{text}").encode()).hexdigest()


def _figures(column: npt.NDArray[np.float64]) -> pa.Array:
    """Figures as Arrow, NaN as null, of which SQL knows."""
    none = np.isnan(column)
    if none.all():
        return pa.nulls(len(column))
    valid = pa.py_buffer(np.packbits(~none, bitorder="little")) if none.any() else None
    return pa.Array.from_buffers(pa.float64(), len(column), [valid, pa.py_buffer(column)])


def _whole_as_float(value: object) -> object:
    # A whole number of one run may be a fraction in another.
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def runs_of(plan: StoredPlan) -> tuple[dict[int, Run], dict[int, str]]:
    """The runs of a plan by index, and the errors of failed runs. Recorded tables are read on demand."""
    return files.again(partial(_runs_of, plan))


def _runs_of(plan: StoredPlan) -> tuple[dict[int, Run], dict[int, str]]:
    runs: dict[int, Run] = {}
    failed: dict[int, str] = {}
    tables = _Tables(plan)
    for part in plan.parts():
        for row in part.read(["index", "hash", "error", "summary"]).to_pylist():
            index = row["index"]
            if row["error"] is not None:
                failed[index] = row["error"]
            elif index not in runs:
                # A run with several queues has several rows with the same summary.
                runs[index] = tables.run(msgspec.json.decode(row["summary"]), index, row["hash"])
    return runs, failed


def known_run(plan: StoredPlan, part: Part, spec: _core.RunSpec, hash_: str) -> FinishedRun | None:
    """Reads a run of another plan under the names of ``spec``. None if it cannot be read.

    ``part`` had the run's row, which a larger file may have now; ``hash_`` is the run's ``StoredPlan.run_hash``.
    """
    try:
        index, text = files.again(partial(_row_of, plan, part, hash_))
        summary = msgspec.json.decode(text)
        summary |= {"label": spec.label, "set": json.loads(spec.set_json)}
        run = _Tables(plan).run(summary, index, hash_)
        read = {str(name): run.read_table(name) for name in RECORDED}
        tables = {name: _columns(table) for name, table in read.items() if table is not None}
        summary.pop("wall_s")
        named = run.read_files()
    except (OSError, ValueError, LookupError):
        return None
    # A complete run always has a histogram.
    return FinishedRun(msgspec.json.encode(summary).decode(), tables, named) if "histogram" in tables else None


def _columns(table: pa.Table) -> Columns:
    """A run's table as the core gives it."""
    own = own_columns(table)
    return {name: numbers(own, name) for name in own.column_names}


def _row_of(plan: StoredPlan, part: Part, hash_: str) -> tuple[int, str]:
    try:
        return _remembered.read(_rows, part)[hash_]
    except files.Gone:
        found = next((other for other in plan.parts() if other.first <= part.first and part.last <= other.last), None)
        if found is None:
            raise LookupError(f"{part.path}: is gone; its runs are repeated") from None
        return _remembered.read(_rows, found)[hash_]


def stacked(tables: Iterable[Columns]) -> pa.Table:
    """The recorded tables of several runs, one after another."""
    alike = (list(own) for _, own in groupby(tables, key=list))
    wholes = [{name: np.concatenate([one[name] for one in own]) for name in own[0]} for own in alike]
    return pa.concat_tables(map(columns_as_arrow, wholes), promote_options="permissive")


def recorded(whole: pa.Table, counts: Mapping[str, int]) -> pa.Table:
    """The recorded rows of several runs, with the hash of each run and the number of its rows."""
    number = np.repeat(np.arange(len(counts), dtype=np.int32), list(counts.values()))
    hashes = pa.DictionaryArray.from_arrays(as_arrow(number), values_as_arrow(list(counts)))
    return whole.add_column(0, "hash", hashes).replace_schema_metadata({_RUNS: json.dumps(counts)})


class _Tables:
    """The recorded tables of a plan."""

    def __init__(self, plan: StoredPlan) -> None:
        self._plan = plan
        self._parts: dict[str, list[Part]] = {}

    def run(self, summary: dict[str, Any], index: int, hash_: str) -> Run:
        """A run with its tables."""
        summary["wall_s"] = 0.0

        def of_run(name: str) -> pa.Table | None:
            return files.again(partial(self._of_run, index, hash_, name))

        return Run(cast("schema.Run", summary), of_run, partial(self._files, index, hash_))

    def _of_run(self, index: int, hash_: str, name: str) -> pa.Table | None:
        if name not in self._parts:
            self._parts[name] = files.parts(self._plan.recorded / name)
        of_batch = next((part for part in self._parts[name] if part.first <= index <= part.last), None)
        try:
            return None if of_batch is None else _remembered.read(_table, of_batch).get(hash_)
        except files.Gone:
            del self._parts[name]
            raise

    def _files(self, index: int, hash_: str) -> dict[str, bytes]:
        tables = [files.again(partial(self._of_run, index, hash_, kind)) for kind in FILES]
        rows = [row for table in tables if table is not None for row in table.to_pylist()]
        return {row["name"]: row["content"] for row in rows}


def _rows(part: Part) -> tuple[dict[str, tuple[int, str]], int]:
    """The rows of several runs, index and summary by hash; with their size."""
    table = part.read(["hash", "index", "summary"])
    rows = zip(*(table[name].to_pylist() for name in ("hash", "index", "summary")), strict=True)
    return {hash_: (index, summary) for hash_, index, summary in rows}, table.nbytes


def _table(part: Part) -> tuple[dict[str, pa.Table], int]:
    """A recorded table of several runs by hash, without its column of hashes; with its size."""
    with pq.ParquetFile(part.content()) as file:
        whole = file.read([name for name in file.schema_arrow.names if name != "hash"])
    counts = json.loads((whole.schema.metadata or {}).get(_RUNS, b"{}"))
    table = whole.replace_schema_metadata(None)
    ends = accumulate(counts.values())
    tables = {hash_: table.slice(end - rows, rows) for (hash_, rows), end in zip(counts.items(), ends, strict=True)}
    return tables, whole.nbytes


class _Remembered:
    """The files that were read last, up to a total size."""

    def __init__(self) -> None:
        self._bytes = 0
        self._files: OrderedDict[tuple[object, Part], tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, load: Callable[[Part], tuple[Content, int]], part: Part) -> Content:
        """The content of a file, from memory or by ``load``, which also tells its size."""
        key = load, part
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
                return cast("Content", self._files[key][0])
        file = load(part)
        with self._lock:
            if key not in self._files:
                self._files[key] = file
                self._bytes += file[1]
            while self._bytes > REMEMBERED_BYTES and len(self._files) > 1:
                self._bytes -= self._files.popitem(last=False)[1][1]
        return file[0]


_remembered = _Remembered()
