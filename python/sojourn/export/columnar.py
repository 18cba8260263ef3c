"""Runs, flows and recorded series as CSV or Parquet; the tables of medians and differences for LaTeX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sojourn._core import ExperimentError
from sojourn.files.storage import Staging
from sojourn.frame.arrow import for_csv, table_of
from sojourn.frame.later import pa, pq
from sojourn.frame.metrics import Metric, group_metrics, metric_called
from sojourn.frame.results import Results
from sojourn.page.pairs import paired_groups_sheet, paired_sheet
from sojourn.page.sheet import tabular
from sojourn.page.tables import groups_sheet, inner_sheet, results_sheet, stations_sheet
from sojourn.store.tablefiles import TABLE_FILES


def stage_csv(results: Results, staging: Staging) -> list[Path]:
    """A CSV file per table."""
    import pyarrow.csv

    written = []
    for name, table in _tables(results):
        # CSV cannot represent dictionary columns.
        for index, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):
                table = table.set_column(index, field.name, table[field.name].cast(field.type.value_type))
        written.append(staging.add(f"{name}.csv", partial(pyarrow.csv.write_csv, for_csv(table))))
    return written


def stage_parquet(results: Results, staging: Staging) -> list[Path]:
    """A Parquet file per table."""
    return [staging.add(f"{name}.parquet", partial(pq.write_table, table)) for name, table in _tables(results)]


def stage_latex(
    results: Results, staging: Staging, baseline: str | None = None, metrics: Sequence[str] | None = None
) -> list[Path]:
    """A tabular per table of medians and of differences from the baseline, for LaTeX's input, with package booktabs.

    With ``metrics``, one of each, which has them as columns.
    """
    chosen = None if metrics is None else [_chosen(name, results) for name in metrics]
    sheets = {"queues": results_sheet(results, chosen)}
    if chosen is None:
        makes = {"groups": groups_sheet, "stations": stations_sheet, "inner_queues": inner_sheet}
        sheets |= {name: sheet for name, make in makes.items() if (sheet := make(results)) is not None}
    if baseline is not None:
        sheets["differences"] = paired_sheet(results, baseline, chosen)
        if chosen is None and (of_groups := paired_groups_sheet(results, baseline)) is not None:
            sheets["group_differences"] = of_groups
    return [staging.add_text(f"{name}.tex", tabular(sheet)) for name, sheet in sheets.items()]


def _chosen(name: str, results: Results) -> Metric:
    """A column of ``--metrics``."""
    if name == "goodput_bps" and results.has_several_links:
        # A row is about one link, and goodput about flows, which may cross several.
        own = [metric.name for metric in group_metrics(results) if metric.declared.name == name]
        raise ExperimentError(f'--metrics: got "{name}" with several links; must be that of a group: {", ".join(own)}')
    try:
        return metric_called(name, results)
    except ExperimentError as error:
        raise ExperimentError(f"--metrics{str(error).removeprefix('metric')}") from None


def flows_table(results: Results) -> pa.Table:
    """A row per run and flow; a distribution has a column per statistic, ``rtt_p50_ms``, a list has none."""
    rows = [
        {"run": index, "label": run.label, "seed": run.seed, **_columns(flow)}
        for index, run in enumerate(results.runs)
        for flow in run.summary["flows"]
    ]
    return table_of(rows)


def _columns(flow: Mapping[str, Any]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for key, value in flow.items():
        if isinstance(value, dict):
            stem, _, unit = key.rpartition("_")
            for statistic, number in value.items():
                columns[f"{stem}_n" if statistic == "n" else f"{stem}_{statistic}_{unit}"] = number
        elif not isinstance(value, list):
            columns[key] = value
    return columns


def _tables(results: Results) -> Iterator[tuple[str, pa.Table]]:
    yield "runs", results.to_arrow()
    yield "flows", flows_table(results)
    for name, file in TABLE_FILES.items():
        table = results.recorded(name)
        if table is not None:
            yield Path(file).stem, table
