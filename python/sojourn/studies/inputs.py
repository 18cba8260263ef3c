"""The inputs of a study's verdicts: files with their hashes, experiments with their seeds, tolerances."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.files import bounded
from sojourn.files.bounded import LARGEST_TEXT
from sojourn.files.typed import json_text
from sojourn.studies.runner import StudyResults

FILE = "inputs.json"
"""The file's name, beside claims.json."""


def inputs_json(results: StudyResults, *, quick: bool) -> str:
    """The file. Departures are differences from the study's files, if the backend lacks a feature."""
    study = results.study
    experiments: list[dict[str, Any]] = []
    for experiment in study.experiments:
        if experiment.id in results.grids:
            runs = [run for cell in results.grids[experiment.id].cells for run in cell.runs]
            experiments.append(
                {
                    "id": experiment.id,
                    "title": experiment.title,
                    "files": [part.file.name for part in experiment.parts],
                    "runs": len(runs),
                    "seeds": sorted({run.seed for run in runs}),
                }
            )
    run_files = dict.fromkeys(name for experiment in experiments for name in experiment["files"])
    document = {
        "sojourn": _core.version,
        "title": study.title,
        "source": study.source,
        "backend": results.backend,
        "departures": list(results.departures),
        "overrides": study.overrides(results.backend, quick=quick),
        "files": [
            *(_input(study.folder / name, with_text=False) for name in ("claims.toml", "study.toml")),
            *(_input(study.folder / name, with_text=True) for name in run_files),
        ],
        "experiments": experiments,
        "figures": {figure.name: figure.title for figure in study.figures},
        "tolerances": {claim.id: claim.tolerance for claim in study.claims},
    }
    return json_text(document)


def _input(path: Path, *, with_text: bool) -> dict[str, str]:
    content = bounded.read_bytes(path, LARGEST_TEXT)
    known = {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}
    if with_text:
        known["text"] = content.decode("utf-8")
    return known
