"""``sojourn replay``: replays a recorded queue through a discipline."""

from __future__ import annotations

from functools import partial
from json import dumps
from typing import Annotated

import msgspec

from sojourn.cli.options import Json, names_of, overrides
from sojourn.cli.parameters import argument, option
from sojourn.runs.replays import ReplayResult, replay
from sojourn.runs.replays import follow as follow_queue


def command(
    events: Annotated[str, argument("Rows E id t_us [bytes [flow [ecn]]] and D id t_us [ce]; may be gzip.", "EVENTS")],
    aqm: Annotated[str, option("The discipline; sojourn list aqm.", among=partial(names_of, "aqm"))],
    set: Annotated[list[str] | None, option("One of its keys: --set variant=linux.", "KEY=VALUE")] = None,
    follow: Annotated[
        str | None,
        option(
            "Keep the queue as recorded and show the algorithm's variables at this interval: 100ms. "
            "For algorithms that drop arrivals.",
            "TIME",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Replay recorded arrivals and departures through a discipline, and show whether it sends the same packets."""
    if follow is not None:
        series = follow_queue(events, aqm=aqm, every=follow, set=dict(overrides(set)))
        columns = {name: column.tolist() for name, column in series.items()}
        # JSON has no NaN: msgspec makes it null.
        print(dumps(msgspec.json.decode(msgspec.json.encode(columns))) if json else _as_text(columns))
        return
    outcome = replay(events, aqm=aqm, set=dict(overrides(set)))
    print(dumps(outcome, indent=1) if json else _sentences(aqm, outcome))


def _sentences(aqm: str, outcome: ReplayResult) -> str:
    lines = [
        f"{outcome['enqueued']} packets entered, {outcome['dequeued']} left",
        f"dropped: {outcome['dropped_recorded']} by the recorded queue, {outcome['dropped_ours']} by {aqm}",
    ]
    if "marked_recorded" in outcome:
        lines.append(f"marked: {outcome['marked_recorded']} by the recorded queue, {outcome['marked_ours']} by {aqm}")
    first = outcome["first_divergence"]
    if first is not None:
        got = "none" if first["got"] is None else f"packet {first['got']}"
        what = f"packet {first['expected']} left, {aqm} sends {got}"
        if "expected_ce" in first:
            marks = [" with" if has_ce else " without" for has_ce in (first["expected_ce"], first["got_ce"])]
            what = f"packet {first['expected']} left{marks[0]} CE, {aqm} sends it{marks[1]}"
        lines.append(f"first divergence: event {first['event']} at {first['t_us'] / 1e6:.6f} s: {what}")
    return "\n".join([*lines, "they agree" if outcome["agree"] else "they do not agree"])


def _as_text(columns: dict[str, list[object]]) -> str:
    rows = zip(*columns.values(), strict=True)
    lines = ["\t".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in row) for row in rows]
    return "\n".join(["\t".join(columns), *lines])
