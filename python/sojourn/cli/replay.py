"""``sojourn replay``: a recorded queue through a discipline."""

from __future__ import annotations

from json import dumps
from typing import Annotated

import typer

from sojourn.cli.options import Json, overrides
from sojourn.replay import replay


def command(
    events: Annotated[str, typer.Argument(metavar="EVENTS", help="Rows E id t_us [bytes] and D id t_us; may be gzip.")],
    aqm: Annotated[str, typer.Option(help="The discipline; sojourn list aqm.")],
    set: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One of its keys: --set variant=linux.")
    ] = None,
    json: Json = False,
) -> None:
    """Drive a discipline with recorded arrivals and departures, and tell whether it lets the same packets go."""
    outcome = replay(events, aqm, overrides(set))
    if json:
        print(dumps(outcome, indent=1))
        return
    print(f"{outcome['enqueued']} packets entered, {outcome['dequeued']} left")
    print(f"given up: {outcome['dropped_recorded']} by the recorded queue, {outcome['dropped_ours']} by {aqm}")
    first = outcome["first_divergence"]
    if first is not None:
        got = "none" if first["got"] is None else f"packet {first['got']}"
        print(
            f"first divergence: event {first['event']} at {first['t_us'] / 1e6:.6f} s:"
            f" packet {first['expected']} left, {aqm} lets go {got}"
        )
    print("they agree" if outcome["agree"] else "they do not agree")
