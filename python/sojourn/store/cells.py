"""The runs of a store as cells: one per queue and combination of swept values."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sojourn import _core
from sojourn.figure.grids import Indices, OfGrid, sensitivity
from sojourn.figure.style import Width
from sojourn.frame.arrow import numbers
from sojourn.frame.cells import LABEL, CellTable, axis_of
from sojourn.frame.later import duckdb, pa
from sojourn.frame.statistics import CONFIDENCE, FloatArray
from sojourn.frame.swept import words
from sojourn.runs.designs import POINTS, problem, salib
from sojourn.store import files
from sojourn.store.plans import EXPERIMENT, Store, StoredPlan
from sojourn.store.query import ONCE, ORDER, ROWS, literal, refusals, whole_parts


class Grid(CellTable):
    """The runs of a store, in cells.

    A cell is a queue (``label``) and a combination of swept values; its runs are those of its seeds. ``plot`` draws.

    Parameters
    ----------
    store
        The store, or its folder.
    where
        A condition of SQL over the columns of ``queues`` (docs/many-runs.md), to choose rows. Without one, a run counts
        with its first queue.

    Raises
    ------
    ExperimentError
        There are no such runs, the condition is wrong, or a file is damaged.
    """

    def __init__(self, store: Store | str | Path, where: str | None = None) -> None:
        self._store = store if isinstance(store, Store) else Store(store)
        files.again(lambda: self._read(where))

    def _read(self, where: str | None) -> None:
        found = whole_parts(self._store, "store")
        everything = [part for _, parts in found for part in parts]
        keys: dict[str, None] = {}
        first = 0
        with files.pinned(everything) as paths, refusals("--where" if where else "store", everything):
            self._rows: duckdb.DuckDBPyConnection = duckdb.connect(":memory:")
            for plan, parts in found:
                # Runs of one file have the same keys, listed runs any.
                some = paths[first : first + (len(parts) if plan.meta.listed else 1)]
                keys |= dict.fromkeys(self._keys_of(some, plan.meta.listed))
                first += len(parts)
            self._pick(paths, where)
        self._columns = {str(row[0]): str(row[1]) for row in self._all("describe picked")}
        self._read_cells([key for key in keys if key in self._columns])

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        return self._rows.execute(sql).fetchall()

    def _keys_of(self, paths: Sequence[str], every: bool) -> list[str]:
        """The keys that the sweep of some files has: of every row, or of the first that has any."""
        if not paths:
            return []
        rows = f"select summary from {ROWS.format(files=_quoted(paths))} where summary is not null"
        some = rows if every else f"{rows} limit 1"
        found = self._all(f"select distinct json_keys(summary, '$.set') from ({some})")
        return [key for (keys,) in found for key in keys or ()]

    def _pick(self, paths: Sequence[str], where: str | None) -> None:
        """Makes the table ``picked``: a row per run."""
        condition = f"where ({where})" if where else ""
        rows = f"(select * from {ROWS.format(files=_quoted(paths))} {condition})"
        known = [str(column[0]) for column in self._all(f"describe select * from {rows}")]
        self._links = []
        if "link" in known:
            found = self._all(f"select distinct link from {rows} where link is not null order by 1")
            self._links = [str(link) for (link,) in found]
        self._rows.execute(
            f"create table picked as select * exclude (summary, file_row_number) from {rows} {ONCE} order by {ORDER}"
        )

    def _read_cells(self, keys: Sequence[str]) -> None:
        columns = [LABEL, *keys]
        names = ", ".join(map(_name, [*columns, "experiment", "aqm", "plan", "setup"]))
        # A run whose values cannot go together has no hash, and no values.
        table = self._rows.sql(f"select {names} from picked where hash is not null").to_arrow_table()
        if not table.num_rows:
            raise _core.ExperimentError(f"{self._store.path} has no such runs")
        if len(table["experiment"].unique()) > 1:
            columns.insert(1, "experiment")
        called = words([key for key in columns if key != LABEL]) | {LABEL: "queue"}
        axes, codes = zip(*(axis_of(key, called[key], table[key]) for key in columns), strict=True)
        self._disciplines = dict(zip(table[LABEL].to_pylist()[::-1], table["aqm"].to_pylist()[::-1], strict=True))
        self._set({axis.key: axis for axis in axes}, np.stack(codes, axis=1))
        self._refuse_mixed(table)

    def _refuse_mixed(self, table: pa.Table) -> None:
        """Checks that the runs of a cell differ in nothing but their seeds."""
        setups = table["setup"].combine_chunks().dictionary_encode()
        pairs = np.unique(np.stack([self._cell_of, setups.indices.to_numpy()]), axis=1)
        counts = np.bincount(pairs[0], minlength=len(self))
        if counts.max() < 2:
            return
        cell = int(np.argmax(counts > 1))
        of_cell = table.filter(self._cell_of == cell)
        plans: dict[str, set[str]] = {}
        for setup, plan in zip(of_cell["setup"].to_pylist(), of_cell["plan"].to_pylist(), strict=True):
            plans.setdefault(setup, set()).add(plan)
        chosen = sorted(", ".join(f"'{plan}'" for plan in sorted(own)) for own in plans.values())
        how = " or ".join(f'--where "plan in ({own})"' for own in chosen) if len(set(chosen)) > 1 else "--where"
        raise _core.ExperimentError(
            f"{self._store.path}: {self.setting(cell, list(self.axes))}: the runs of this cell differ in more than "
            f"their seeds, they are of several experiments; choose those of one with {how}"
        )

    def _numbers(self, column: str) -> FloatArray:
        table = self._rows.sql(f"select {_name(column)} x from picked where hash is not null").to_arrow_table()
        values: FloatArray = numbers(table, "x").astype(np.float64)
        return values

    def _counts(self, columns: Sequence[str]) -> Sequence[int]:
        return self._all(f"select {', '.join(f'count({_name(column)})' for column in columns)} from picked")[0]

    def plans(self) -> list[StoredPlan]:
        """The sweeps that made its runs."""
        made = {str(row[0]) for row in self._all("select distinct plan from picked where hash is not null")}
        return [plan for plan in self._store.plans() if plan.id in made]

    @property
    def name(self) -> str:
        """The names of the experiments."""
        names = self._all("select distinct experiment from picked where hash is not null order by 1")
        return ", ".join(str(row[0]) for row in names)

    @property
    def plot(self) -> Pictures:
        """Its pictures."""
        return Pictures(self, self.plans)


class Pictures(OfGrid):
    """The pictures of a grid; each is a matplotlib Figure, saved with ``savefig``.

    Keys are ``"label"``, the queue under test, and the swept keys, ``"link.rate"``. Metrics are columns of the store.
    There is a panel for each queue and each combination of the values of the other swept keys; with ``pool`` the runs
    of those combinations count together. An ``ExperimentError`` tells of keys and metrics that the store does not have.
    """

    def __init__(self, grid: CellTable, plans: Callable[[], list[StoredPlan]]) -> None:
        super().__init__(grid)
        self._plans = plans

    def sensitivity(self, metric: str = "sojourn_p95_ms", *, width: Width | None = None) -> Figure:
        """What a metric depends on: indices of Sobol' of each key, for a sweep with ``design = "sobol"``."""
        shown = self._grid.column(metric)
        return sensitivity(self._grid, shown, indices(self._grid, self._plans(), metric), width)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _quoted(paths: Iterable[str]) -> str:
    return "[" + ", ".join(map(literal, paths)) + "]"


_RESAMPLES = 1000


def indices(grid: CellTable, plans: list[StoredPlan], metric: str) -> list[Indices]:
    """First-order and total indices of each queue (Saltelli et al. 2010), of the medians of cells made by ``plans``.

    Raises ExperimentError if the runs are not those of one Sobol design, some are missing, or there is no such metric.
    """
    shown = grid.column(metric)
    plan = _design_of(plans)
    points = tomllib.loads(f"points = {dict(plan.meta.overrides)[POINTS]}")["points"]
    keys = tuple(points)
    columns = [[grid.axes[key].place_of(value) for value in points[key]] for key in keys]
    medians = dict(zip(map(tuple, grid.codes.tolist()), grid.intervals(shown).middle.tolist(), strict=True))
    found = []
    for index, label in enumerate(grid.axes[LABEL].texts):
        of_label: dict[str, int | None] = {**dict.fromkeys(grid.axes, 0), LABEL: index}
        cells = ({**of_label, **dict(zip(keys, point, strict=True))} for point in zip(*columns, strict=True))
        values = np.array([medians.get(tuple(cell.values()), np.nan) for cell in cells])
        missing = int(np.isnan(values).sum())
        if missing:
            raise _core.ExperimentError(
                f"plot: {missing} of {len(values)} points of {label} have no {metric}; must have all: "
                "sojourn sweep makes what is missing"
            )
        found.append(_of(label, keys, values))
    return found


def _design_of(made: list[StoredPlan]) -> StoredPlan:
    """The sweep among those that made some runs, which must be one Sobol design."""
    plans = [plan for plan in made if POINTS in dict(plan.meta.overrides)]
    if len(plans) != 1:
        found = f"{len(plans)}: choose one with --where \"plan = '…'\"" if plans else "none"
        raise _core.ExperimentError(f'plot: needs the runs of a sweep with design = "sobol"; the store has {found}')
    plan = plans[0]
    # Also checks that this version reads it, and loads its disciplines.
    _ = plan.sweep
    given = [(key, value) for key, value in plan.meta.overrides if key != POINTS]
    design = json.loads(_core.design_json(str(plan.folder / EXPERIMENT), given))
    if design is None or design["kind"] != "sobol":
        raise _core.ExperimentError('plot: needs the runs of a sweep with design = "sobol"; they have another design')
    return plan


def _of(label: str, keys: tuple[str, ...], values: FloatArray) -> Indices:
    if np.ptp(values) == 0.0:
        return Indices(label, keys, *[np.full(len(keys), np.nan)] * 4)
    # As SALib advises: without its mean the estimates vary less.
    found = salib("analyze.sobol").analyze(
        problem(keys), values - values.mean(), calc_second_order=False, num_resamples=_RESAMPLES,
        conf_level=CONFIDENCE, seed=1,
    )  # fmt: skip
    names = ("S1", "S1_conf", "ST", "ST_conf")
    return Indices(label, keys, *(np.asarray(found[name], dtype=np.float64) for name in names))
