"""The measured values of every run as CSV, with a data dictionary (a Data Package of the Frictionless standard)."""

from __future__ import annotations

import csv
import io
import math

from sojourn import _core
from sojourn.files.typed import json_text
from sojourn.studies.suites.pages import command_of
from sojourn.studies.suites.runner import Evaluation

COLUMNS = {
    "section": ("string", "section of the suite's document"),
    "scenario": ("string", "name of the scenario, with its case"),
    "weight": ("string", "the document's word: must, should or may"),
    "queue": ("string", "the discipline, with parameters after a colon"),
    "role": ("string", "under test, reference (drop-tail) or against"),
    "seed": ("integer", "seed of the run"),
    "metric": ("string", "name of the metric; the list is under metrics"),
    "unit": ("string", "unit of the value"),
    "value": ("number", "the metric of this run; empty if the run does not have it"),
}


def data_csv(evaluation: Evaluation) -> str:
    """One row per run and metric."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    roles = {arm.queue: arm.role for arm in evaluation.arms}
    for index, one in enumerate(evaluation.planned):
        scenario = one.scenario
        for run in evaluation.measured.get(index, []):
            for name, value in run.values.items():
                unit = evaluation.suite.content.metrics[name].unit
                shown = "" if math.isnan(value) else f"{value:.9g}"
                where = (scenario.section, scenario.title(one.case), scenario.weight)
                writer.writerow([*where, run.queue, roles[run.queue], run.seed, name, unit, shown])
    return out.getvalue()


def dictionary_json(evaluation: Evaluation) -> str:
    """datapackage.json: what the columns and metrics of data.csv mean."""
    fields = [{"name": name, "type": kind, "description": words} for name, (kind, words) in COLUMNS.items()]
    metrics = [
        {"name": name, "unit": metric.unit, "description": metric.label, "better": metric.better}
        for name, metric in evaluation.suite.content.metrics.items()
    ]
    document = {
        "name": f"{evaluation.suite.name}-evaluation",
        "title": f"{evaluation.suite.content.title}: {evaluation.arms[0].queue}",
        "version": _core.version,
        "command": command_of(evaluation),
        "resources": [
            {"name": "data", "path": "data.csv", "format": "csv", "schema": {"fields": fields}},
        ],
        "metrics": metrics,
    }
    return json_text(document)
