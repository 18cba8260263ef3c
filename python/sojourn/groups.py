"""Groups of flows: the application-level figures, a group per traffic entry and direction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from sojourn.schema import Run

if TYPE_CHECKING:
    from sojourn.results import Results

Group = Mapping[str, Any]
"""An element of a run's ``groups`` in summary.json."""


@dataclass(frozen=True)
class Merit:
    """A figure of a group of flows."""

    name: str
    """Its name, with its unit as suffix."""
    heading: str
    value: Callable[[Group], float]
    shown_per: float = 1.0
    digits: int = 2
    words: str = ""
    is_of_application: bool = False
    """True if a user of the application perceives it."""
    scale: tuple[float, float] | None = None
    """The ends of its scale, if that does not begin at zero."""
    counted_by: str = ""
    """The figure with the number of values, for a quantile that may have few."""


CODE_POINTS = {
    0: "BE",
    1: "LE",
    8: "BK",
    44: "VA",
    46: "EF",
    **{8 * precedence: f"CS{precedence}" for precedence in range(2, 8)},
    **{8 * kind + 2 * drop: f"AF{kind}{drop}" for kind in range(1, 5) for drop in range(1, 4)},
}
"""Code points by number, in Flent's words: BE is CS0, best effort; BK is CS1, background."""


def code_point(flow: Group) -> str:
    """The code point of a flow's packets."""
    number = int(flow.get("dscp", 0))
    return CODE_POINTS.get(number, str(number))


def _number(key: str) -> Callable[[Group], float]:
    def value(group: Group) -> float:
        found = group.get(key)
        return math.nan if found is None else float(found)

    return value


def _spread(key: str, statistic: str) -> Callable[[Group], float]:
    def value(group: Group) -> float:
        found = (group.get(key) or {}).get(statistic)
        return math.nan if found is None else float(found)

    return value


def _video(key: str) -> Callable[[Group], float]:
    def value(group: Group) -> float:
        found = (group.get("video") or {}).get(key)
        return math.nan if found is None else float(found)

    return value


def _goodput(group: Group) -> float:
    return math.nan if group["kind"] == "ping" else float(group["goodput_bps"])


def _times(stem: str, one: str, words: str) -> list[Merit]:
    """The completion or load times of files or pages, and their number."""
    quantiles = [
        Merit(
            f"{stem}_{at}_ms", f"{one} {at} ms", _spread(f"{stem}_ms", at), words=f"{of} {words}",
            is_of_application=True, counted_by=f"{stem}_n",
        )
        for at, of in (("p50", "median"), ("p95", "p95 of the"))
    ]  # fmt: skip

    def count(group: Group) -> float:
        return _spread(f"{stem}_ms", "n")(group) or math.nan

    return [*quantiles, Merit(f"{stem}_n", f"{one}s", count, digits=0, words=f"finished {one}s")]


MERITS: tuple[Merit, ...] = (
    Merit("goodput_bps", "goodput Mbit/s", _goodput, shown_per=1e6, words="goodput"),
    Merit("jain_goodput", "Jain", _number("jain_goodput"), words="Jain's index over goodput"),
    Merit("rtt_p50_ms", "RTT p50 ms", _spread("rtt_ms", "p50"), words="median RTT"),
    Merit("rtt_p95_ms", "RTT p95 ms", _spread("rtt_ms", "p95"), words="p95 of the RTT"),
    Merit("one_way_p95_ms", "one-way p95 ms", _spread("one_way_ms", "p95"), words="p95 of the one-way delay"),
    Merit("lost_packets", "lost", _number("lost_packets"), digits=0, words="lost packets"),
    Merit(
        "mos", "MOS 1–4.5", _number("mos"), words="call quality: MOS", is_of_application=True, scale=(1.0, 4.5)
    ),
    *_times("page_load", "page", "page load time"),
    *_times("completion", "file", "completion time"),
    Merit(
        "video_rate_bps", "video Mbit/s", _video("media_rate_bps"), shown_per=1e6, words="video's media rate",
        is_of_application=True,
    ),
    Merit("video_stalled_ms", "stalled ms", _video("stalled_ms"), words="time of stalls", is_of_application=True),
)  # fmt: skip
"""The columns of the table of groups, in order."""


def groups_of(run: Run) -> list[Group]:
    """The groups of a run, with the total ``lost_packets`` of their flows.

    For results of versions without groups, they are computed from the flows. Then only a group of one flow has
    distributions, because quantiles of several flows cannot be combined.
    """
    kept = cast("Mapping[str, Any]", run).get("groups")
    groups = list(kept) if kept is not None else _of_flows(run)
    lost: dict[tuple[int, str], int] = {}
    for flow in run["flows"]:
        if "lost_packets" in flow:
            place = flow["traffic"], flow["direction"]
            lost[place] = lost.get(place, 0) + flow["lost_packets"]
    places = [(group["traffic"], group["direction"]) for group in groups]
    return [
        {**group, "lost_packets": lost[place]} if place in lost else group
        for group, place in zip(groups, places, strict=True)
    ]


def _of_flows(run: Run) -> list[Group]:
    members: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for flow in run["flows"]:
        members.setdefault((flow["traffic"], flow["direction"]), []).append(flow)
    kinds: dict[str, set[int]] = {}
    for (traffic, _), flows in members.items():
        kinds.setdefault(flows[0]["kind"], set()).add(traffic)
    groups: list[Group] = []
    for (traffic, direction), flows in members.items():
        kind = str(flows[0]["kind"])
        name = flows[0].get("name") or (kind if len(kinds[kind]) == 1 else f"{kind} {traffic}")
        group: dict[str, Any] = {**(flows[0] if len(flows) == 1 else {})}
        group |= {"traffic": traffic, "name": name, "kind": kind, "direction": direction, "flows": len(flows)}
        group["goodput_bps"] = sum(flow["goodput_bps"] for flow in flows)
        scores = [flow["mos"] for flow in flows if flow.get("mos") is not None]
        if scores:
            import numpy as np

            group["mos"] = float(np.mean(scores))
        groups.append(group)
    return groups


class GroupIndex:
    """The groups of results by title: by name, with the direction if the name occurs in both."""

    def __init__(self, results: Results) -> None:
        self._groups = {id(run.summary): groups_of(run.summary) for run in results.runs}
        places = dict.fromkeys(
            (group["name"], group["direction"]) for groups in self._groups.values() for group in groups
        )
        counts = Counter(name for name, _ in places)
        self._titles = {
            (name, direction): f"{name}.{direction}" if counts[name] > 1 else name for name, direction in places
        }
        self._by_title = {run: {self.title(group): group for group in groups} for run, groups in self._groups.items()}

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
        places = {(flow["traffic"], flow["kind"]): code_point(flow) for flow in run["flows"]}
        kind, traffic = group["kind"], group["traffic"]
        of_kind = [point for (_, other), point in places.items() if other == kind]
        if group["name"] not in (kind, f"{kind} {traffic}") or set(of_kind) == {"BE"}:
            return title
        point = places[traffic, kind]
        own = point if kind == "bulk" else f"{kind} {point}"
        named = own if of_kind.count(point) == 1 else f"{group['name']} {point}"
        return title.replace(group["name"], named, 1)

    def at(self, run: Run, title: str) -> Group | None:
        """The group of a run with this title; None if there is none."""
        return self._by_title[id(run)].get(title)

    def value(self, run: Run, title: str, merit: Merit) -> float:
        """A figure of a run's group; NaN if there is none."""
        group = self.at(run, title)
        return math.nan if group is None else merit.value(group)

    def pairs(self) -> list[tuple[str, Merit]]:
        """All titles, each with every figure that some run has."""
        return [
            (title, merit)
            for title in self.titles
            for merit in MERITS
            if any(title in groups and not math.isnan(merit.value(groups[title])) for groups in self._by_title.values())
        ]
