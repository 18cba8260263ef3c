"""What flows received beside what their link carried."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sojourn.frame.groups import shown_groups
from sojourn.frame.results import Results
from sojourn.frame.swept import links_in, quantity
from sojourn.schema import DIRECTIONS

MORE = 1.05
"""Goodputs may be this much more than what the link carried: what was queued before the warm-up ended arrives later."""


def links_of(results: Results) -> dict[str, Sequence[Mapping[str, Any]]]:
    """The links of each cell, by what the cell sets; none if they are not known."""
    try:
        return {json.dumps(cell["set"]): links_in(cell) for cell in json.loads(results.resolved_json or "[]")}
    except (ValueError, LookupError, TypeError, RecursionError):
        return {}  # Whoever shows the file itself tells that it is damaged.


def above_capacity(results: Results, directions: Collection[str] = DIRECTIONS) -> str:
    """A note on groups of flows that received more than their link carries, or together more than it carried."""
    if results.has_several_links:
        return ""
    links = {of: cell[0] for of, cell in links_of(results).items()}
    above: dict[str, bool] = {}
    together = False
    for run in results.runs:
        link = links.get(json.dumps(run.summary["set"]), {})
        for direction in filter(directions.__contains__, results.directions):
            way = link if direction == "down" else link.get("up", {})
            rate = quantity(way.get("rate"))
            groups = [group for group in shown_groups(run.summary) if group["direction"] == direction]
            if rate is not None:
                # Flows that appeared, of a service one after another, have no warm-up.
                given = [one for one in groups if one["kind"] not in ("tcp", "udp")]
                found = {one["name"]: "lost_packets" not in one for one in given if one["goodput_bps"] > rate.value}
                above |= found
                carried = rate.value * run.summary["bottleneck"][direction]["utilization"]
                together |= not found and sum(one["goodput_bps"] for one in groups) > MORE * carried
    queued = "what was queued before the warm-up ended counts when it arrives"
    lost = ", and what waited behind a lost segment" if any(above.values()) else ""
    note = f"; the goodput of {', '.join(above)} exceeds the link's rate: {queued}{lost}" if above else ""
    if together:
        note += "; goodputs of flows, each over the time in which it sends, add up to more than the link carried"
    return note
