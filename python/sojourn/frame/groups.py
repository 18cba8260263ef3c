"""Groups of flows: the application-level figures, a group per traffic entry and direction; what all received."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sojourn.frame.registry import Declared, declared
from sojourn.frame.swept import links_in, quantity
from sojourn.schema import DIRECTIONS, Run

if TYPE_CHECKING:
    from sojourn.frame.results import Results

Group = Mapping[str, Any]
"""An element of a run's ``groups`` in summary.json."""
MORE = 1.05
"""Goodputs may be this much more than what the link carried: what was queued before the warm-up ended arrives later."""


def shown_groups(run: Run) -> list[Group]:
    """The groups that tables and figures show, in the order of the file: a total in place of its groups."""
    return sorted((group for group in run["groups"] if "total" not in group), key=lambda group: group["traffic"])


def totals_of(run: Run) -> dict[tuple[int, str], str]:
    """The total of each group that has one, by its ``traffic`` and direction."""
    return {(group["traffic"], group["direction"]): group["total"] for group in run["groups"] if "total" in group}


CODE_POINTS = {
    **{0: "BE", 1: "LE", 8: "BK", 44: "VA", 45: "NQB", 46: "EF"},
    **{8 * precedence: f"CS{precedence}" for precedence in range(2, 8)},
    **{8 * kind + 2 * drop: f"AF{kind}{drop}" for kind in range(1, 5) for drop in range(1, 4)},
}
"""Code points by number, in Flent's words: BE is CS0, best effort; BK is CS1, background."""


def code_point(flow: Group) -> str:
    """The code point of a flow's packets."""
    number = int(flow["dscp"])
    return CODE_POINTS.get(number, str(number))


class GroupIndex:
    """The groups of results by title: by name, with the direction if the name occurs in both."""

    def __init__(self, results: Results) -> None:
        of_runs: dict[int, list[Group]] = {id(run.summary): shown_groups(run.summary) for run in results.runs}
        keys = dict.fromkeys((group["name"], group["direction"]) for groups in of_runs.values() for group in groups)
        counts = Counter(name for name, _ in keys)
        self._titles = {
            (name, direction): f"{name}.{direction}" if counts[name] > 1 else name for name, direction in keys
        }
        self._by_title = {run: {self.title(group): group for group in groups} for run, groups in of_runs.items()}
        self._values: dict[tuple[str, str], dict[int, float]] = {}
        """The figure of each run, by title and metric."""

    @property
    def titles(self) -> tuple[str, ...]:
        """All groups, in the order of the file."""
        return tuple(self._titles.values())

    def title(self, group: Group) -> str:
        """The title of a group."""
        return self._titles[group["name"], group["direction"]]

    def words(self, run: Run, title: str) -> str:
        """The title for people: a group without a name of its own is called after its code point, if some have one."""
        group = self._by_title[id(run)][title]
        keys = {(flow["traffic"], flow["kind"]): code_point(flow) for flow in run["flows"]}
        kind, traffic = group["kind"], group["traffic"]
        of_kind = [point for (_, other), point in keys.items() if other == kind]
        if group["name"] not in (kind, f"{kind} {traffic}") or set(of_kind) == {"BE"}:
            return title
        point = keys[traffic, kind]
        own = point if kind == "bulk" else f"{kind} {point}"
        named = own if of_kind.count(point) == 1 else f"{group['name']} {point}"
        return title.replace(group["name"], named, 1)

    def at(self, run: Run, title: str) -> Group | None:
        """The group of a run with this title; None if there is none."""
        return self._by_title[id(run)].get(title)

    def values(self, title: str, metric: Declared, runs: Iterable[Run]) -> list[float]:
        """A figure of the groups of this title; NaN where there is none."""
        known = self._values_of(title, metric)
        return [known[id(run)] for run in runs]

    def pairs(self) -> list[tuple[str, Declared]]:
        """All titles, each with every figure that some run has."""
        return [
            (title, metric)
            for title in self.titles
            for metric in declared("group")
            if not all(map(math.isnan, self._values_of(title, metric).values()))
        ]

    def _values_of(self, title: str, metric: Declared) -> dict[int, float]:
        if (title, metric.name) not in self._values:
            numbers = metric.of_each([groups.get(title) for groups in self._by_title.values()])
            self._values[title, metric.name] = dict(zip(self._by_title, numbers, strict=True))
        return self._values[title, metric.name]


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
