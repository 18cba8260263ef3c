"""Every packet that passes the queue."""

from __future__ import annotations

from typing import Any

import numpy as np

from sojourn.frame import series
from sojourn.frame.statistics import FloatArray
from sojourn.studies.figures.panel import Panel


def draw_packets(panel: Panel) -> None:
    """Arrivals above, departures below, and for each packet a line whose slant is its waiting time.

    A packet is as wide as its transmission time and as high as the rate, so that its area is its size.
    """
    axes, part = panel.axes, panel.measure.part
    for scheme, look in panel.looks.items():
        for cell in panel.cells(scheme):
            found = series.passages(cell.runs[0], part.directions[0])
            if found is None:
                continue
            arriving, leaving = _top_mbps(found.arrival_s, found.bits), _top_mbps(found.departure_s, found.bits)
            gap = 0.25 * max(arriving, leaving)
            wide: dict[str, Any] = {
                "align": "edge",
                "color": look.color + "77",
                "edgecolor": look.color,
                "linewidth": 0.6,
            }
            axes.bar(found.arrival_s, arriving, found.bits / arriving / 1e6, bottom=gap, **wide)
            axes.bar(found.departure_s, -leaving, found.bits / leaving / 1e6, bottom=-gap, **wide)
            ends = np.stack([found.arrival_s, found.departure_s])
            axes.plot(ends, [gap, -gap], color=look.color, linewidth=0.7)
            ticks = {gap: 0.0, gap + arriving: arriving, -gap: 0.0, -gap - leaving: leaving}
            axes.set_yticks(list(ticks), [f"{rate:.3g}" for rate in ticks.values()])
    axes.set_xlim(part.from_s, part.to_s if np.isfinite(part.to_s) else None)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("leaving, arriving [Mbit/s]")


def _top_mbps(t_s: FloatArray, bits: FloatArray) -> float:
    """The highest rate from one packet to the next."""
    order = np.argsort(t_s, kind="stable")
    gaps = np.diff(t_s[order])
    apart = gaps > 0.0
    return float((bits[order][:-1][apart] / gaps[apart]).max() / 1e6) if apart.any() else 1.0
