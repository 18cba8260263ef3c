"""The results of an experiment, returned by ``run`` and ``compare`` and read by ``load``."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from sojourn import _core, schema
from sojourn.files.extras import missing
from sojourn.files.typed import json_text
from sojourn.frame.arrow import table_of, with_run_columns
from sojourn.frame.groups import GroupIndex
from sojourn.frame.later import pa
from sojourn.frame.metrics import Metric, columns, has_queue, metric_called, queue_at, queues
from sojourn.frame.statistics import median_interval
from sojourn.frame.swept import number_columns, plain_settings, setting_text

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from rich.table import Table

    from sojourn.figure.plots import Plots
    from sojourn.page.results import DifferenceFrame, Tables

Direction = Literal["down", "up"]
TableName = Literal["packets", "queue_series", "flow_series", "rtts", "medium", "histogram"]
Recorded = TableName | Literal["completions"]
RECORDED: tuple[Recorded, ...] = (*get_args(TableName), "completions")

IF_ASKED_FOR = frozenset({"packets", "queue_series", "flow_series", "rtts", "medium"})
"""Tables that exist only if the experiment records them."""


class Recordings(ABC):
    """The recorded tables of a run or, with the columns ``run``, ``label`` and ``seed`` first, of all runs together."""

    @abstractmethod
    def recorded(self, name: TableName) -> pa.Table | None:
        """A recorded table, None if it was not recorded; null where only other runs have a column."""

    def packets(self) -> pa.Table | None:
        """A row per packet at the queue; None unless ``[record] packets = true``."""
        return self.recorded("packets")

    def queue_series(self) -> pa.Table | None:
        """The queue in bins of time; None unless ``[record] series`` was set."""
        return self.recorded("queue_series")

    def flow_series(self) -> pa.Table | None:
        """Every flow in bins of time; None unless ``[record] series`` was set."""
        return self.recorded("flow_series")

    def rtts(self) -> pa.Table | None:
        """A row per round-trip time measured by a flow; None unless ``[record] rtt = true``."""
        return self.recorded("rtts")

    def medium(self) -> pa.Table | None:
        """A row per transmission in a cell of Wi-Fi; None unless ``[record] medium = true``."""
        return self.recorded("medium")

    def histogram(self) -> pa.Table | None:
        """Sojourn times after the warm-up: a row per direction and non-empty bucket, ``sojourn_ms`` its upper edge."""
        return self.recorded("histogram")


@dataclass(frozen=True)
class Run(Recordings):
    """One run: a queue under one seed in one cell of the sweep."""

    summary: schema.Run
    """The run's element of ``runs`` in summary.json."""
    read_table: Callable[[Recorded], pa.Table | None]
    read_files: Callable[[], dict[str, bytes]] = dict
    """Returns its capture and qlogs, by their names in a folder, where ``*`` stands for the run."""

    def __repr__(self) -> str:
        cell = "".join(f", {key} = {value}" for key, value in self.summary["set"].items())
        return f"<Run {self.label}, seed {self.seed}{cell}>"

    @property
    def label(self) -> str:
        """The arm's name."""
        return self.summary["label"]

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.summary["seed"]

    def sojourn_ms(self, queue: str = "down") -> schema.Distribution:
        """Sojourn times of the packets that left a queue after the warm-up, in ms."""
        return queue_at(self.summary, queue)["sojourn_ms"]

    def recorded(self, name: TableName) -> pa.Table | None:
        """One of its recorded tables; None if it was not recorded."""
        return self.read_table(name)

    def capture(self) -> bytes | None:
        """Headers of the packets at the bottleneck, a pcapng file; None unless ``[record] pcap = true``."""
        return self.read_files().get("capture_*.pcapng")

    def qlog(self, flow: int = 0) -> bytes | None:
        """What the sender of a TCP flow did, a JSON text sequence; None unless ``[record] qlog = true``."""
        return self.read_files().get(f"qlog_*_flow_{flow}.sqlog")


@dataclass(frozen=True)
class Arm:
    """The repeats of one queue in one cell of the sweep."""

    label: str
    set: dict[str, Any]
    """The swept keys, or a study's axes, and their values in this cell."""
    runs: tuple[Run, ...]

    @property
    def name(self) -> str:
        """Label and swept values by their keys: ``codel, link.rate 10 Mbit/s``."""
        return ", ".join([self.label, *(f"{key} {value}" for key, value in self.set.items())])

    @property
    def title(self) -> str:
        """Label and swept values in words, for figures: ``codel, rate 10 Mbit/s``."""
        return ", ".join(filter(None, [self.label, setting_text(self.set)]))

    @property
    def discipline(self) -> str:
        """The name of its queue discipline."""
        return self.runs[0].summary["queue"]


def arms_of(runs: Sequence[Run], named: Callable[[Run], tuple[str, dict[str, Any]]]) -> list[Arm]:
    """The arms of runs, in their order; ``named`` returns a run's label and its values of the swept keys."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(json.dumps(named(run)), []).append(run)
    return [Arm(*named(of[0]), tuple(of)) for of in groups.values()]


class Results(Recordings):
    """All runs of an experiment, with tables and figures.

    Examples
    --------
    >>> import sojourn as sj
    >>> results = sj.compare("pfifo", "codel", rate="10 Mbit/s", rtt="40 ms", duration="5 s")
    >>> [arm.label for arm in results.arms]
    ['pfifo', 'codel']
    """

    def __init__(self, summary: schema.Summary, runs: Sequence[Run], resolved_json: str | None = None) -> None:
        self.summary = summary
        """The document that ``--json`` prints."""
        self.runs = tuple(runs)
        """All runs: cells of the sweep in file order, then seeds, then queues."""
        self.resolved_json = resolved_json
        """The experiment with every default filled in; None if not known."""

    @classmethod
    def of(
        cls, runs: Sequence[Run], *, experiment: str, backend: str = "sim", resolved_json: str | None = None
    ) -> Results:
        """The results of these runs, made by this version; ``experiment`` is its name."""
        summary: schema.Summary = {
            "format": schema.FORMAT,
            "sojourn": _core.version,
            "experiment": experiment,
            "backend": backend,
            "runs": [run.summary for run in runs],
        }
        return cls(summary, runs, resolved_json)

    @property
    def partial(self) -> bool:
        """True if the experiment was stopped before all its runs were done."""
        return self.summary.get("partial", False)

    @property
    def missed(self) -> list[str]:
        """The metrics that did not become as precise as requested, a line per queue and cell."""
        until = self.summary.get("until")
        return [] if until is None else until["missed"]

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """The runs grouped by queue and cell of the sweep, in the order of the file."""
        return tuple(arms_of(self.runs, lambda run: (run.label, run.summary["set"])))

    def by_cell(self) -> dict[str, Results]:
        """The results of each cell of the sweep, by its swept values: ``link.rate 10 Mbit/s``; one without a sweep."""
        cells: dict[str, list[Run]] = {}
        for run in self.runs:
            name = ", ".join(f"{key} {value}" for key, value in run.summary["set"].items())
            cells.setdefault(name, []).append(replace(run, summary={**run.summary, "set": {}}))
        return {name: self.of_runs(runs) for name, runs in cells.items()}

    def of_runs(self, runs: Sequence[Run]) -> Results:
        """These results with other runs."""
        return Results({**self.summary, "runs": [run.summary for run in runs]}, runs)

    @cached_property
    def directions(self) -> tuple[Direction, ...]:
        """The directions in which the first link under test has a queue."""
        both: tuple[Direction, ...] = ("down", "up")
        return tuple(d for d in both if any(has_queue(run.summary, d) for run in self.runs))

    @cached_property
    def has_several_links(self) -> bool:
        """True if the experiment has several links."""
        return any(len(run.summary["links"]) > 1 for run in self.runs)

    @cached_property
    def queues(self) -> tuple[str, ...]:
        """All queues: ``down`` and ``up``; with several links ``home/down`` and so on, link by link."""
        return tuple(dict.fromkeys(queue for run in self.runs for queue in queues(run.summary)))

    @cached_property
    def groups(self) -> GroupIndex:
        """The figures of the groups of flows, by name."""
        return GroupIndex(self)

    def table(self) -> Table:
        """One row per arm: the median over repeats with its 95 % confidence interval."""
        return self._tables.table()

    def paired(self, baseline: str, metrics: str | Sequence[str] | None = None) -> DifferenceFrame:
        """The difference of every other queue from the one labelled ``baseline``, on the same seeds.

        A swept value may be the baseline, too: ``"cubic"``, or ``"traffic.0.tcp=cubic"`` if several keys have it.
        ``metrics`` are names as for ``plot.bars``, also of groups of flows: ``["sojourn_p95_ms", "mos"]``; by default
        the columns of the table. ``print`` shows what comes back as a table; its ``to_pandas()`` and ``to_polars()``
        have the numbers, with the columns of differences.csv. Raises ExperimentError if there is no such
        baseline or nothing beside it, ValueError if there is no such metric.
        """
        return self._tables.paired(baseline, metrics)

    def __str__(self) -> str:
        return self._tables.text()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self._tables.html()

    @property
    def _tables(self) -> Tables:
        from sojourn.page.results import Tables

        return Tables(self)

    def __repr__(self) -> str:
        return f"<Results of {self.summary['experiment']!r}: {len(self.runs)} runs of {len(self.arms)} arms>"

    def to_arrow(self) -> pa.Table:
        """One row per run, link and direction; units are in the column names.

        A swept key has a column with the text of the file, ``link.rate``, and a numeric one, ``link.rate_bps``. The
        figures of a group of flows are in columns such as ``movie.rtt_p50_ms``, the same in both rows of a run, and
        those of an inner queue in ``queue.sparse.sojourn_p95_ms``.
        """
        return table_of(self.rows())

    def to_pandas(self) -> pd.DataFrame:
        """``to_arrow`` as a pandas frame; pandas must be installed."""
        return _with_pandas(self.to_arrow())

    def to_frame(self, metrics: str | Sequence[str] | None = None) -> IntervalFrame:
        """Medians over the repeats with their 95 % intervals: a row per arm, case, cell, queue and metric.

        A metric of a group or of the whole run has one row, without a direction. ``metrics``: by default every column
        of ``to_arrow``; ValueError if there is no such metric. The frame has ``to_pandas()`` and ``to_polars()``.
        """
        names = [metrics] if isinstance(metrics, str) else metrics
        chosen = self._columns if names is None else [metric_called(name, self) for name in names]
        return interval_frame(self, chosen)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of ``to_arrow`` as dictionaries; a row may lack keys of others."""
        heads, figures = self.columns()
        rows = zip(*figures.values(), strict=True)
        return [
            {key: run.summary[key] for key in ("queue", "label", "seed")} | head | dict(zip(figures, row, strict=True))
            for (run, head), row in zip(heads, rows, strict=True)
        ]

    def columns(self) -> tuple[list[tuple[Run, dict[str, Any]]], dict[str, list[float]]]:
        """The rows of ``to_arrow``: each with its run, cell and queue; and the columns of their figures.

        Figures that only other runs have are NaN.
        """
        heads: list[tuple[Run, dict[str, Any]]] = []
        of_rows: list[int] = []
        places: dict[str, list[int]] = {queue: [] for queue in self.queues}
        links = {queue: queue.rpartition("/") for queue in self.queues}
        for index, run in enumerate(self.runs):
            cell = plain_settings(run.summary["set"])
            cell |= {name: number for name, number in number_columns(run.summary["set"]).items() if name not in cell}
            for queue, (link, _, direction) in links.items():
                if has_queue(run.summary, queue):
                    places[queue].append(len(heads))
                    heads.append((run, cell | {"direction": direction} | ({"link": link} if link else {})))
                    of_rows.append(index)
        figures: dict[str, list[float]] = {}
        every = [run.summary for run in self.runs]
        at_queues = {queue: [heads[at][0].summary for at in own] for queue, own in places.items()}
        for metric in self._columns:
            if metric.is_of_run:
                numbers = metric.values("down", every)
                figures[metric.name] = [numbers[index] for index in of_rows]
                continue
            column = figures[metric.name] = [math.nan] * len(heads)
            for queue, runs in at_queues.items():
                for at, number in zip(places[queue], metric.values(queue, runs), strict=True):
                    column[at] = number
        return heads, figures

    @cached_property
    def _columns(self) -> Sequence[Metric]:
        return columns(self)

    def recorded(self, name: TableName) -> pa.Table | None:
        """A recorded table of all runs, concatenated."""
        tables = [(index, run, run.read_table(name)) for index, run in enumerate(self.runs)]
        parts = [with_run_columns(table, index, run) for index, run, table in tables if table is not None]
        return pa.concat_tables(parts, promote_options="default") if parts else None

    def lacking(self, name: TableName) -> list[str]:
        """The arms without a table that was recorded for other arms."""
        recorded = {arm.name: any(run.read_table(name) is not None for run in arm.runs) for arm in self.arms}
        return [arm for arm, has in recorded.items() if not has] if any(recorded.values()) else []

    @property
    def plot(self) -> Plots:
        """The figures: ``plot.cdf()``, ``plot.box()``, ``plot.ellipse()``, ``plot.timeseries()`` and others."""
        try:
            from sojourn.figure.plots import Plots
        except ModuleNotFoundError as error:
            raise missing(error) from None
        return Plots(self)

    def to_json(self) -> str:
        """summary.json."""
        return json_text(self.summary)

    def save(self, directory: str | Path, *, plots: bool = True, formats: Sequence[str] = ("png",)) -> list[Path]:
        """Writes summary.json, summary.csv, experiment.json, recorded tables and plots in ``formats``: png, svg, pdf.

        Returns the files. All appear together under their final names, or none does. Files of earlier results that are
        not written again are removed, unless they were changed since. Raises OSError if the directory cannot be written
        to, OutputError if a file of the user's, or one changed since Sojourn wrote it, would be replaced.
        """
        from sojourn.store.folder import save

        return save(self, directory, plots=plots, formats=formats)


class IntervalFrame:
    """A table that every library of data frames reads: it offers Arrow's C stream, ``__arrow_c_stream__``.

    The columns are ``label``, the swept keys (and ``case``), with several links ``link``, then ``direction``,
    ``metric``, ``median``, ``low``, ``high`` (the 95 % interval; of one repeat, the value itself) and ``n``, the
    number of repeats.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        """As an Arrow table."""
        return self._table

    def to_pandas(self) -> pd.DataFrame:
        """As a pandas frame; pandas must be installed."""
        return _with_pandas(self._table)

    def to_polars(self) -> pl.DataFrame:
        """As a polars frame; polars must be installed."""
        try:
            import polars as pl
        except ModuleNotFoundError as error:
            raise missing(error) from None
        return cast("pl.DataFrame", pl.from_arrow(self._table))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        names = ", ".join(self._table.column_names)
        return f"<{len(self)} medians with intervals; columns {names}; .to_pandas(), .to_polars(), .to_arrow()>"


def _with_pandas(table: pa.Table) -> pd.DataFrame:
    try:
        import pandas  # noqa: F401, so that what lacks is said by us
    except ModuleNotFoundError as error:
        raise missing(error) from None
    return cast("pd.DataFrame", table.to_pandas())


def interval_frame(results: Results, metrics: Sequence[Metric]) -> IntervalFrame:
    """The medians of metrics; those that an arm does not have are left out."""
    rows: list[dict[str, Any]] = []
    for arm in results.arms:
        cell = {"label": arm.label} | arm.set
        cell |= {name: number for name, number in number_columns(arm.set).items() if name not in cell}
        there = set()
        for queue in (queue for queue in results.queues if has_queue(arm.runs[0].summary, queue)):
            for metric in metrics:
                link, direction = metric.place(queue)
                if (metric.name, link, direction) in there:
                    continue
                there.add((metric.name, link, direction))
                where = {"link": link} if results.has_several_links else {}
                where["direction"] = direction
                found = median_interval(metric.values(queue, [run.summary for run in arm.runs]))
                if not math.isnan(found.middle):
                    values = {"median": found.middle, "low": found.low, "high": found.high, "n": found.n}
                    rows.append(cell | where | {"metric": metric.name} | values)
    return IntervalFrame(table_of(rows))
