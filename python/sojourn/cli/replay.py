"""``sojourn replay``: a recorded queue through a discipline."""

from __future__ import annotations

import json as json_
from typing import Annotated

import typer

from sojourn.cli.options import Json, Set, overrides
from sojourn.recorded import Outcome, follow_with, replay_with


def command(
    events: Annotated[
        str,
        typer.Argument(metavar="EVENTS", help="The recording, plain or gzip: rows E id t_us [bytes] and D id t_us."),
    ],
    aqm: Annotated[str, typer.Option(help="The discipline; sojourn list aqm.")],
    set: Set = None,
    follow: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Keep the queue as recorded and show the algorithm's variables this often: 100ms. "
            "For algorithms that drop arrivals.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Replay a recorded queue through a discipline and tell where they part."""
    if follow is not None:
        _show_series(follow_with(events, aqm, overrides(set), follow), json=json)
        return
    outcome = replay_with(events, aqm, overrides(set))
    print(json_.dumps(outcome) if json else _sentence(aqm, outcome))


def _sentence(aqm: str, outcome: Outcome) -> str:
    counts = (
        f"{outcome['enqueued']} packets entered, {outcome['dequeued']} left; "
        f"dropped: {outcome['dropped_recorded']} in the recording, {outcome['dropped_ours']} by {aqm}"
    )
    divergence = outcome["first_divergence"]
    if divergence is not None:
        ours = "none" if divergence["got"] is None else f"packet {divergence['got']}"
        where = f"event {divergence['event']}, {divergence['t_us']} us"
        return f"{counts}\nthey part at {where}: packet {divergence['expected']} left, {aqm} gives {ours}"
    if outcome["agree"]:
        return f"{counts}\nthey agree: every packet left at its recorded instant"
    return f"{counts}\nevery packet left at its recorded instant, but not as many were dropped"


def _show_series(series: dict, *, json: bool) -> None:  # type: ignore[type-arg]
    columns = {name: column.tolist() for name, column in series.items()}
    if json:
        print(json_.dumps({name: [_json(value) for value in column] for name, column in columns.items()}))
        return
    print("\t".join(columns))
    for row in zip(*columns.values(), strict=True):
        print("\t".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row))


def _json(value: float) -> float | None:
    # JSON has no NaN.
    return value if value == value else None
