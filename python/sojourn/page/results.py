"""The tables of results together, for their methods: for a terminal, as text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from sojourn.frame.metrics import metric_called
from sojourn.frame.results import Results
from sojourn.page.pairs import paired_sheet
from sojourn.page.sheet import as_table, fitting, plain, sheet_html
from sojourn.page.tables import groups_sheet, groups_table, inner_sheet, results_sheet, results_table, stations_sheet


class Tables:
    """The tables of results."""

    def __init__(self, results: Results) -> None:
        self._results = results

    def paired(self, baseline: str, metrics: Sequence[str] | None = None) -> Table:
        """``Results.paired``."""
        chosen = None if metrics is None else [metric_called(name, self._results) for name in metrics]
        return as_table(paired_sheet(self._results, baseline, chosen))

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
