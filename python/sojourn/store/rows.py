"""Runs as table rows: one row per run and queue, units in the column names."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from sojourn import _core
from sojourn.frame.arrow import values_as_arrow
from sojourn.frame.later import pa
from sojourn.frame.results import Results, Run
from sojourn.store.plans import StoredPlan

IDENTITY = ("hash", "setup", "plan", "index", "experiment", "backend", "aqm", "label", "seed", "error", "summary")
"""The columns of every row."""


@dataclass(frozen=True)
class RunOutcome:
    """A finished run, or the reason why it failed."""

    index: int
    spec: _core.RunSpec | None
    """None if its combination of values is invalid."""
    run: Run | None
    error: str | None = None


def table_of(plan: StoredPlan, made: Sequence[RunOutcome]) -> pa.Table:
    """The rows of runs. A failed run has one row, without figures."""
    results = Results.of([one.run for one in made if one.run is not None], experiment="")
    rows: list[dict[str, object]] = []
    backend = plan.meta.backend.partition(" ")[0]
    for one in made:
        identity: dict[str, object] = {"plan": plan.id, "index": one.index, "backend": backend, "error": one.error}
        if one.spec is None:
            rows.append(identity)
            continue
        identity |= {
            "hash": plan.run_hash(one.spec),
            "setup": setup_of(one.spec, plan.meta.backend),
            "experiment": one.spec.name,
            "aqm": one.spec.queue,
            "label": one.spec.label,
            "seed": one.spec.seed,
        }
        if one.run is None:
            swept: dict[str, object] = json.loads(one.spec.set_json)
            rows.append(identity | {key: _plain(value) for key, value in swept.items()})
            continue
        # Omit the wall time, so that the same run gives the same row.
        summary = {key: value for key, value in one.run.summary.items() if key != "wall_s"}
        identity["summary"] = msgspec.json.encode(summary).decode()
        rows += [identity | _figures(row) for row in results.rows_of(one.run)]
    names = dict.fromkeys([*IDENTITY, *(name for row in rows for name in row)])
    return pa.table({name: values_as_arrow([row.get(name) for row in rows], _type_of(name)) for name in names})


def setup_of(spec: _core.RunSpec, backend: str = "sim") -> str:
    """SHA-256, in hexadecimal, of everything that determines a run's results, except for its seed."""
    document = msgspec.json.decode(spec.document)
    experiment = document["experiment"]
    del document["set"], experiment["experiment"]["name"], experiment["experiment"]["seed"]
    for queue in experiment["queue"]:
        queue.pop("label", None)
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256((text if backend == "sim" else f"{backend}\n{text}").encode()).hexdigest()


def _figures(row: dict[str, object]) -> dict[str, object]:
    return {name: _figure(value) for name, value in row.items() if name not in ("queue", "label", "seed")}


def _figure(value: object) -> object:
    # All figures are floats, since a whole number of one run may be a fraction in another. SQL ignores null.
    if isinstance(value, float):
        return None if math.isnan(value) else value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _plain(value: object) -> object:
    """A swept value of a failed run, as ``_figure`` gives it for a finished one."""
    return _figure(value) if isinstance(value, int | float) else str(value)


def _type_of(name: str) -> pa.DataType | None:
    if name in ("index", "seed"):
        return pa.uint64()
    return pa.string() if name in IDENTITY else None
