"""The measurements of a study's runs in a small file, from which claims can be judged again without runs."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from sojourn import _core
from sojourn.files import typed
from sojourn.frame.results import Run
from sojourn.studies.grid import Cell, Grid
from sojourn.studies.measures import Measure, Single, Values
from sojourn.studies.recipe import Study, grids_of
from sojourn.studies.runner import StudyResults

FILE = "measured.json"
STATISTICS = ("mean", "min", "p5", "p10", "p25", "median", "p75", "p90", "p95", "max")


@dataclass(frozen=True)
class KeptRun:
    """A run with only its metrics: lists of ``STATISTICS``, or single numbers, in the paper's units."""

    seed: int
    metrics: Mapping[str, Any]


@dataclass(frozen=True)
class KeptMeasure:
    """A metric of stored runs."""

    name: str
    pooled: bool = False

    def of_repeats(
        self, runs: Sequence[KeptRun], name: str, _place: Mapping[str, float | bool | str]
    ) -> tuple[float, ...]:
        """A statistic of each repeat, or of all combined if they are pooled; it includes the place's offsets."""
        kept = [run.metrics.get(self.name) for run in runs]
        if not self.pooled:
            return tuple(_statistic(values, name) for values in kept)
        # As it was stored: a study that has changed since may not pool what it did then, or the reverse.
        together = [value for values in kept if isinstance(values, dict) for value in values["values"]]
        return (Values(np.array(together)).statistic(name),)


def _statistic(values: dict[str, list[float]] | list[float | None] | float | None, name: str) -> float:
    """A statistic of what is kept of a run; NaN if it was not stored."""
    if isinstance(values, dict):
        return Values(np.array(values["values"])).statistic(name)
    if isinstance(values, list):
        value = dict(zip(STATISTICS, values, strict=True)).get("mean" if name == "value" else name)
        return math.nan if value is None else value
    return math.nan if values is None else Single(values).statistic(name)


@dataclass(frozen=True)
class Kept:
    """The stored runs of a study."""

    backend: str
    kernels: tuple[str, ...]
    departures: tuple[str, ...]
    runs: int
    grids: Mapping[str, Grid]
    """By experiment; sufficient to judge claims, not to draw figures."""


def as_json(results: StudyResults) -> str:
    """Every run's metrics, a line per scheme and place."""
    rows = [
        {
            "experiment": experiment.id,
            "scheme": cell.label,
            "at": cell.set,
            "runs": [{"seed": run.seed, **_metrics(grid, cell, run)} for run in cell.runs],
        }
        for experiment in results.study.experiments
        if not experiment.runs_of and (grid := results.grids.get(experiment.id)) is not None
        for cell in grid.cells
    ]
    head = {
        "study": results.study.name,
        "sojourn": _core.version,
        "backend": results.backend,
        "kernels": sorted({run.summary["kernel"] for run in results.runs if "kernel" in run.summary}),
        "departures": list(results.departures),
        "statistics": list(STATISTICS),
    }
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f'{json.dumps(head, indent=1, ensure_ascii=False)[:-2]},\n "cells": [\n{lines}\n]}}\n'


def read(path: Path, study: Study) -> Kept:
    """Reads the output of ``as_json``. Raises ValueError if it belongs to another study, or has other statistics."""
    document = typed.read_json(path)
    if document["study"] != study.name or tuple(document["statistics"]) != STATISTICS:
        raise ValueError(f"{path}: not what is kept of {study.name}")
    cells: dict[str, list[Cell]] = {}
    for row in document["cells"]:
        runs = tuple(KeptRun(run.pop("seed"), run) for run in row["runs"])
        # A grid asks only for statistics of a run and a measure, which these have.
        cells.setdefault(row["experiment"], []).append(Cell(row["scheme"], row["at"], cast("tuple[Run, ...]", runs)))
    measures = cast("dict[str, Measure]", {name: KeptMeasure(name, one.pooled) for name, one in study.measures.items()})
    return Kept(
        document["backend"],
        tuple(document["kernels"]),
        tuple(document["departures"]),
        sum(len(cell.runs) for of_experiment in cells.values() for cell in of_experiment),
        grids_of(study, cells, measures, document["backend"]),
    )


def _metrics(grid: Grid, cell: Cell, run: Run) -> dict[str, Any]:
    place = {**grid.constants, **cell.set}
    metrics: dict[str, Any] = {}
    for name, measure in grid.measures.items():
        if not measure.applies_to(run, place):
            continue
        if measure.pooled:
            metrics[name] = {"values": [_short(value) for value in measure.values(run, place)]}
            continue
        count, value, *values = measure.statistics(run, ("count", "value", *STATISTICS), place)
        # Only single numbers have a count.
        if not math.isnan(count):
            metrics[name] = _short(value)
        elif not all(map(math.isnan, values)):
            metrics[name] = [_short(value) for value in values]
    return metrics


def _short(value: float) -> float | None:
    """Rounds to six digits, more than the tolerance of any claim needs."""
    return None if math.isnan(value) else float(f"{value:.6g}")
