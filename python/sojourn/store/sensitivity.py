"""How much each swept key contributes to the variance of a metric: indices of Sobol'."""

from __future__ import annotations

import json
import tomllib

import numpy as np

from sojourn import _core
from sojourn.figure.grids import Indices
from sojourn.frame.cells import LABEL, CellTable
from sojourn.frame.statistics import CONFIDENCE, FloatArray
from sojourn.runs.designs import POINTS, problem, salib
from sojourn.store.plans import EXPERIMENT, StoredPlan

_RESAMPLES = 1000


def indices(grid: CellTable, plans: list[StoredPlan], metric: str) -> list[Indices]:
    """The first-order and total indices of each queue (Saltelli et al. 2010), of the medians of cells.

    ``plans`` are the sweeps that made the runs of the cells.

    Raises ExperimentError if the runs are not those of one Sobol design, some are missing, or there is no such metric.
    """
    shown = grid.measure(metric)
    plan = _design_of(plans)
    points = tomllib.loads(f"points = {dict(plan.meta.overrides)[POINTS]}")["points"]
    keys = tuple(points)
    columns = [[grid.axes[key].place_of(value) for value in points[key]] for key in keys]
    medians = grid.intervals(shown).middle
    cell_at = {tuple(row): cell for cell, row in enumerate(grid.codes.tolist())}
    order = [list(grid.axes).index(key) for key in keys]
    found = []
    for label_place, label in enumerate(grid.axes[LABEL].texts):
        values = np.full(len(columns[0]), np.nan)
        for at, indices in enumerate(zip(*columns, strict=True)):
            row = [0] * len(grid.axes)
            row[list(grid.axes).index(LABEL)] = label_place
            for axis, index in zip(order, indices, strict=True):
                row[axis] = -1 if index is None else index
            cell = cell_at.get(tuple(row))
            if cell is not None:
                values[at] = medians[cell]
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
        nothing = np.full(len(keys), np.nan)
        return Indices(label, keys, nothing, nothing, nothing, nothing)
    # As SALib advises: without its mean the estimates vary less.
    found = salib("analyze.sobol").analyze(
        problem(keys), values - values.mean(), calc_second_order=False, num_resamples=_RESAMPLES,
        conf_level=CONFIDENCE, seed=1,
    )  # fmt: skip
    first, first_reach, total, total_reach = (
        np.asarray(found[name], dtype=np.float64) for name in ("S1", "S1_conf", "ST", "ST_conf")
    )
    return Indices(label, keys, first, first_reach, total, total_reach)
