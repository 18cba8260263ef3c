"""The tables of results together, for their methods: for a terminal, as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from sojourn.frame.arrow import table_of
from sojourn.frame.later import pa
from sojourn.frame.metrics import metric_called, of_queues
from sojourn.frame.pairs import check_compared, difference_rows
from sojourn.frame.results import IntervalFrame, Results
from sojourn.page.pairs import paired_sheet
from sojourn.page.sheet import Sheet, as_table, fitting, plain, sheet_html
from sojourn.page.tables import groups_sheet, groups_table, inner_sheet, results_sheet, results_table, stations_sheet


class DifferenceFrame(IntervalFrame):
    """Differences seed by seed: ``print`` shows the table, ``to_pandas()`` and the others have the numbers.

    The columns are those of differences.csv: ``label``, ``baseline``, the swept keys (and ``case``), ``link``,
    ``direction``, ``metric``, the median ``difference`` with its 95 % interval ``low`` and ``high`` (null with one
    seed), ``seeds``, their number, and ``clear``, 1 where an asterisk is.
    """

    def __init__(self, table: pa.Table, sheet: Sheet) -> None:
        super().__init__(table)
        self._sheet = sheet

    def __str__(self) -> str:
        return plain(as_table(self._sheet))

    def __rich__(self) -> Table:
        return as_table(self._sheet)

    def _repr_html_(self) -> str:
        return sheet_html(self._sheet)

    def __repr__(self) -> str:
        return super().__repr__().replace("medians", "differences", 1)


class Tables:
    """The tables of results."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def paired(self, baseline: str, metrics: str | Sequence[str] | None = None) -> DifferenceFrame:
        """``Results.paired``."""
        check_compared(baseline, ((arm.set, arm.label) for arm in self._results.arms))
        names = [metrics] if isinstance(metrics, str) else metrics
        chosen = of_queues(self._results) if names is None else [metric_called(name, self._results) for name in names]
        rows = difference_rows(self._results, baseline, chosen)
        sheet = paired_sheet(self._results, baseline, None if names is None else chosen)
        return DifferenceFrame(table_of(rows), sheet)

    def table(self) -> Table:
        """``Results.table``."""
        return results_table(self._results)

    def text(self) -> str:
        """All tables as text."""
        tables = [self.table(), groups_table(groups_sheet(self._results))]
        tables += [fitting(make(self._results)) for make in (stations_sheet, inner_sheet)]
        return "\n".join(plain(table) for table in tables if table is not None)

    def html(self) -> str:
        """All tables as HTML."""
        sheets = [make(self._results) for make in (results_sheet, groups_sheet, stations_sheet, inner_sheet)]
        return "\n".join(sheet_html(sheet) for sheet in sheets if sheet is not None)
