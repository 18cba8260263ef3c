"""What Wi-Fi's medium was used for: the shares of each station, of collisions and of silence, a bar per arm."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure

from sojourn.figure.names import name_arms
from sojourn.figure.of_results import OfResults
from sojourn.figure.style import COLORS, Width, figure, legend, name_y, note, style, width_for
from sojourn.frame.results import Arm
from sojourn.schema import Link

MOST_NAMED = 8
"""Stations with a colour of their own; the others are drawn together."""
COLLISIONS, SILENCE = "#888888", "#FFFFFF"


def _share(link: Link, station: str) -> float:
    return link["stations"][station]["airtime_share"] if station in link["stations"] else 0.0


def _mean(arm: Arm, link: str, share: Callable[[Link], float]) -> float:
    shares: list[float] = []
    for run in arm.runs:
        links: Mapping[str, Link] = run.summary["links"]
        shares.append(share(links[link]))
    return sum(shares) / len(shares)


class Airtime(OfResults):
    """The uses of a Wi-Fi medium."""

    def airtime(self, link: str | None = None, *, width: Width | None = None) -> Figure:
        """What a Wi-Fi medium was used for: stacked bars of its stations, of collisions and of silence.

        ``link`` is its name; by default the first link that is Wi-Fi.
        """
        results = self._results
        link = self._wifi_link(link)
        arms = results.arms
        # A sweep may change which stations there are.
        names = list(dict.fromkeys(name for arm in arms for name in arm.runs[0].summary["links"][link]["stations"]))
        named, others = names[:MOST_NAMED], names[MOST_NAMED:]
        with style():
            drawn = figure(width_in=width_for(len(arms)), width=width)
            axes = drawn.add_subplot()
            below = [0.0] * len(arms)

            def stack(label: str, color: str, share: Callable[[Link], float], hatch: str = "") -> None:
                heights = [_mean(arm, link, share) for arm in arms]
                axes.bar(
                    range(len(arms)), heights, 0.6, below, label=label, color=color, edgecolor="#333333", linewidth=0.5,
                    hatch=hatch,
                )  # fmt: skip
                below[:] = [low + height for low, height in zip(below, heights, strict=True)]

            for name, color in zip(named, COLORS, strict=False):
                stack(name, color + "AA", lambda one, name=name: _share(one, name))  # type: ignore[misc]
            if others:
                together = f"{len(others)} more stations"
                stack(
                    together,
                    COLORS[-1] + "AA",
                    lambda one: sum(one["stations"][name]["airtime_share"] for name in others),
                )
            stack("collisions", COLLISIONS, lambda one: one["medium"]["collision_share"], "//")
            stack("nobody sends", SILENCE, lambda one: one["medium"]["idle_share"])
            axes.set_ylim(0.0, 1.0)
            axes.grid(axis="x", visible=False)
            name_arms([axes], [arm.title for arm in arms], drawn.get_figwidth() - 0.7)
            name_y(axes, "share of the time")
            repeated = any(len(arm.runs) > 1 for arm in arms)
            note(axes, "mean of the repeats" if repeated else "")
            legend(drawn, axes)
            return drawn
