"""The runs of a store as cells: one per queue and combination of swept values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sojourn import _core
from sojourn.grids.intervals import Intervals, median_intervals, ranges
from sojourn.grids.measure import Measure, is_of_queue, measure
from sojourn.statistics import FloatArray
from sojourn.store import files
from sojourn.store.plans import Store, StoredPlan
from sojourn.store.query import ORDER, ROWS, literal, refusal, whole_parts
from sojourn.swept import SHOWN, Quantity, quantity, words

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from sojourn.grids.pictures import Pictures

LABEL = "label"
"""The key of the queues under test."""
NONE = "–"
"""The value of a key that the sweep of a run does not have."""
_NO_FIGURES = ("place", "seed", "file_row_number")


@dataclass(frozen=True)
class Axis:
    """A key with its values: in the order of numbers if all are numbers of one unit, else as they were run."""

    key: str
    texts: tuple[str, ...]
    """The values as written."""
    numbers: FloatArray | None
    """The values in ``unit``; None if some are no numbers."""
    unit: str
    words: str
    """Its name for people, which distinguishes it from the other keys: ``link rate``."""

    def place_of(self, value: object) -> int | None:
        """The place of a value as a file has it; None if no run has it."""
        text = _text(float(value)) if isinstance(value, int) and not isinstance(value, bool) else _text(value)
        if self.numbers is None:
            return self.texts.index(text) if text in self.texts else None
        return self._places.get(quantity(text))

    @cached_property
    def _places(self) -> dict[Quantity | None, int]:
        return {quantity(text): place for place, text in enumerate(self.texts)}

    @property
    def axis_label(self) -> str:
        """``link rate [Mbit/s]``."""
        return f"{self.words} [{self.unit}]" if self.unit and self.numbers is not None else self.words


class Grid:
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
        self.is_pooled = False
        """Whether cells combine runs of several settings."""
        files.again(lambda: self._read(where))

    def _read(self, where: str | None) -> None:
        import duckdb

        found = whole_parts(self._store, "store")
        everything = [part for _, parts in found for part in parts]
        with files.pinned(everything) as paths:
            try:
                self._rows: duckdb.DuckDBPyConnection = duckdb.connect(":memory:")
                keys: dict[str, None] = {}
                first = 0
                for plan, parts in found:
                    # Runs of one file have the same keys, listed runs any.
                    some = paths[first : first + (len(parts) if plan.meta.listed else 1)]
                    keys |= dict.fromkeys(self._keys_of(some, plan.meta.listed))
                    first += len(parts)
                self._pick(paths, where)
            except duckdb.Error as error:
                files.refuse_gone(everything)
                raise refusal(self._store, "--where" if where else "store", error) from None
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
        self._links: list[str] = []
        if "link" in known:
            found = self._all(f"select distinct link from {rows} where link is not null order by 1")
            self._links = [str(link) for (link,) in found]
        self._rows.execute(
            f"create table picked as select * exclude (summary, file_row_number) "
            f"from {rows} "
            f"qualify row_number() over (partition by coalesce(hash, plan || place) order by {ORDER}) = 1 "
            f"order by {ORDER}"
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
        axes, codes = zip(*(_axis(key, called[key], table[key]) for key in columns), strict=True)
        self._disciplines: dict[str, str] = dict(
            zip(table[LABEL].to_pylist()[::-1], table["aqm"].to_pylist()[::-1], strict=True)
        )
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

    def _set(self, axes: dict[str, Axis], codes: npt.NDArray[np.int64]) -> None:
        self.axes = axes
        """The queues and the swept keys."""
        self._of_rows = codes
        self.codes, cell_of = np.unique(codes, axis=0, return_inverse=True)
        """The value of each axis in each cell, as its place in the axis; shape (cells, axes)."""
        self._cell_of: npt.NDArray[np.int64] = cell_of.ravel()

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def runs(self) -> int:
        """How many runs the cells have."""
        return len(self._cell_of)

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
        from sojourn.grids.pictures import Pictures

        return Pictures(self)

    @cached_property
    def varying(self) -> list[str]:
        """The axes with more than one value."""
        return [key for key, axis in self.axes.items() if len(axis.texts) > 1]

    def axis(self, key: str, option: str) -> Axis:
        """An axis; ``option`` is how the key was asked for.

        Raises
        ------
        ExperimentError
            There is none.
        """
        if key not in self.axes:
            raise _core.ExperimentError(f'{option}: got "{key}"; must be one of {", ".join(self.axes)}')
        return self.axes[key]

    def places(self, key: str) -> npt.NDArray[np.int64]:
        """The value of an axis in each cell, as its place in the axis."""
        found: npt.NDArray[np.int64] = self.codes[:, list(self.axes).index(key)]
        return found

    def discipline(self, label: str) -> str:
        """The discipline of a queue."""
        return self._disciplines[label]

    @cached_property
    def metrics(self) -> list[str]:
        """The columns of figures that some run has."""
        numbers = {f"{key}_{unit}" for key in self.axes for unit in SHOWN}
        names = [
            name
            for name, kind in self._columns.items()
            if kind in ("DOUBLE", "BIGINT", "FLOAT") and name not in (*self.axes, *_NO_FIGURES, *numbers)
        ]
        if len(self._links) > 1:
            # A run has a queue at each link: which is meant is not known.
            names = [name for name in names if not is_of_queue(name)]
        counts = self._all(f"select {', '.join(f'count({_name(name)})' for name in names)} from picked")[0]
        return [name for name, count in zip(names, counts, strict=True) if count]

    def measure(self, name: str, option: str = "--metric") -> Measure:
        """What a metric is.

        Raises
        ------
        ExperimentError
            No run has it.
        """
        if name not in self.metrics:
            if len(self._links) > 1 and is_of_queue(name):
                raise _core.ExperimentError(
                    f"{option}: {name} is of a queue, and the runs have several links, {', '.join(self._links)}: "
                    f"choose one with --where \"link = '{self._links[0]}'\", or a metric of a group of flows"
                )
            owned = [known for known in self.metrics if known.endswith(f".{name}")]
            if len(owned) == 1:
                return measure(owned[0])
            near = owned or get_close_matches(name, self.metrics, 6, 0.5) or self.metrics
            raise _core.ExperimentError(
                f'{option}: got "{name}"; must be one of the store\'s columns: {", ".join(near)}'
            )
        return measure(name)

    def intervals(self, shown: Measure) -> Intervals:
        """The median of a metric in each cell with its 95 % confidence interval, in the unit people see.

        Where runs of several settings are combined, the interval is the range of their values: they are not a sample of
        one quantity, whose median could be estimated.
        """
        column = self._rows.sql(f"select {_name(shown.name)} x from picked where hash is not null").to_arrow_table()
        values = column["x"].to_numpy().astype(np.float64) / shown.per
        known = np.where(np.isfinite(values), values, np.nan)
        found = median_intervals(known, self._cell_of, len(self))
        return ranges(found, known, self._cell_of) if self.is_pooled else found

    def pooled(self, keys: Iterable[str]) -> Grid:
        """The same runs in larger cells, which differ only in these keys."""
        kept = [key for key in self.axes if key in set(keys)]
        other = object.__new__(Grid)
        other.__dict__ |= {name: value for name, value in self.__dict__.items() if name != "varying"}
        places = [list(self.axes).index(key) for key in kept]
        other._set({key: self.axes[key] for key in kept}, self._of_rows[:, places])
        other.is_pooled = self.is_pooled or len(other) < len(self)
        return other

    def setting(self, cell: int, keys: Sequence[str]) -> str:
        """The values of a cell, for a title: ``codel, link rate 10 Mbit/s``."""
        texts = {key: self.axes[key].texts[self.places(key)[cell]] for key in keys}
        return ", ".join(
            # A line of a title ends after a comma.
            text if key == LABEL else _phrase(self.axes[key].words, text).replace(" ", "\N{NO-BREAK SPACE}")
            for key, text in texts.items()
        )


def _phrase(name: str, text: str) -> str:
    if text in ("True", "False"):
        return name if text == "True" else f"no {name}"
    return f"{text} flow{'' if text == '1' else 's'}" if name == "flows" else f"{name} {text}"


def _axis(key: str, name: str, column: pa.ChunkedArray) -> tuple[Axis, npt.NDArray[np.int64]]:
    """An axis from a column, and the place in it of each row."""
    coded = column.combine_chunks().dictionary_encode()
    # Null is a value, too.
    places = coded.indices.fill_null(len(coded.dictionary)).to_numpy().astype(np.int64)
    texts = [_text(value) for value in coded.dictionary.to_pylist()] + [NONE]
    used = [place for place in range(len(texts)) if place < len(texts) - 1 or coded.null_count]
    found = [None if key in (LABEL, "experiment") else quantity(texts[place]) for place in used]
    known = [one for one in found if one is not None]
    if len(known) < len(found) or len({one.unit for one in known}) > 1:
        return Axis(key, tuple(texts[place] for place in used), None, "", name), places
    # The same value may be written in two ways: the first is shown.
    first: dict[Quantity, str] = {}
    for one, place in zip(known, used, strict=True):
        first.setdefault(one, texts[place])
    ordered = sorted(first)
    rank = {one: place for place, one in enumerate(ordered)}
    ranks = np.array([rank[one] for one in known])
    per, unit = SHOWN.get(known[0].unit, (1.0, ""))
    numbers = np.array([one.value / per for one in ordered])
    return Axis(key, tuple(first[one] for one in ordered), numbers, unit, name), ranks[places]


def _text(value: object) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    return str(value)


def _name(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _quoted(paths: Iterable[str]) -> str:
    return "[" + ", ".join(map(literal, paths)) + "]"
