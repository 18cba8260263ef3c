"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sojourn._core import ExperimentError

Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Write summary.json, recorded tables and plots to this directory."),
]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, help="Runs at the same time; default: one per processor.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to standard output, and nothing else.")]
Baseline = Annotated[
    str | None,
    typer.Option("--baseline", metavar="LABEL", help="Also show how the other queues differ from this one, by seed."),
]
Backend = Annotated[str, typer.Option("--backend", help="Where to run it.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help='Replace a value, by dotted key: --set queue.0.target="10 ms".'),
]


def overrides(assignments: list[str] | None) -> list[tuple[str, str]]:
    """``KEY=VALUE`` strings as pairs.

    Raises
    ------
    ExperimentError
        One has no key or no equals sign.
    """
    pairs = []
    for assignment in assignments or []:
        key, equals, value = assignment.partition("=")
        if not (key.strip() and equals):
            raise ExperimentError(f'--set: got "{assignment}"; must be KEY=VALUE, like queue.0.target="10 ms"')
        pairs.append((key.strip(), value.strip()))
    return pairs
