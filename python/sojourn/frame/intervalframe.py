"""Medians with their intervals in long form: a row per arm, cell of the sweep, queue and metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from sojourn.frame.arrow import table_of
from sojourn.frame.later import pa
from sojourn.frame.metrics import Metric, has_queue
from sojourn.frame.statistics import median_interval
from sojourn.frame.swept import number_columns

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from sojourn.frame.results import Results


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
        return cast("pd.DataFrame", self._table.to_pandas())

    def to_polars(self) -> pl.DataFrame:
        """As a polars frame; polars must be installed."""
        import polars as pl

        return cast("pl.DataFrame", pl.from_arrow(self._table))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __repr__(self) -> str:
        names = ", ".join(self._table.column_names)
        return f"<{len(self)} medians with intervals; columns {names}; .to_pandas(), .to_polars(), .to_arrow()>"


def interval_frame(results: Results, metrics: Sequence[Metric]) -> IntervalFrame:
    """The medians of metrics; those that an arm does not have are left out."""
    rows: list[dict[str, Any]] = []
    for arm in results.arms:
        cell = {"label": arm.label} | arm.set
        cell |= {name: number for name, number in number_columns(arm.set).items() if name not in cell}
        queues = [queue for queue in results.queues if has_queue(arm.runs[0].summary, queue)]
        for queue in queues:
            link, _, direction = queue.rpartition("/")
            for metric in metrics:
                if metric.is_of_run and queue != queues[0]:
                    continue
                where = {"link": "" if metric.is_of_run else link} if link else {}
                where["direction"] = "" if metric.is_of_run else direction
                found = median_interval([metric.value(run.summary, queue) for run in arm.runs])
                if not math.isnan(found.middle):
                    values = {"median": found.middle, "low": found.low, "high": found.high, "n": found.n}
                    rows.append(cell | where | {"metric": metric.name} | values)
    return IntervalFrame(table_of(rows))
