"""What is compared with Linux, and when two figures agree."""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sojourn import Run
from sojourn.frame.arrow import numbers
from sojourn.frame.registry import declared_as
from sojourn.frame.series import delivered
from sojourn.frame.statistics import quantiles
from sojourn.studies.tolerances import TOLERANCES, Tolerance

FloatArray = npt.NDArray[np.float64]
Figures = Mapping[str, float | None]
"""A figure per metric; None where there is none, as the RTT of a ping that was not sent."""


def quantile(values: FloatArray, level: float) -> float:
    """The smallest of the values that at least this share of all does not exceed, as in a summary. Some are needed."""
    return float(quantiles(values, np.array([level]))[0])


@dataclass(frozen=True)
class Metric:
    """One figure of a scenario. With a tolerance it counts for the verdict, without it is only shown."""

    key: str
    title: str
    unit: str
    tolerance: Tolerance | None = None

    @property
    def tolerated(self) -> str:
        """The tolerance in words."""
        relative, absolute = self.tolerance or (0.0, 0.0)
        return f"{100 * relative:g} %" + (f" or {absolute:g} {self.unit}" if absolute else "")

    @property
    def short(self) -> str:
        """Its title in a table of a queue's figures."""
        return self.title.removeprefix("sojourn ")

    @classmethod
    def of(cls, key: str, title: str, *names: str, unit: str = "") -> Metric:
        """The sum of metrics of the registry: the title has their headings, the first the unit and the tolerance."""
        found = [one for name in names if (one := declared_as(name, "run", "direction", "queue", "group"))]
        heads = (one.head.removeprefix("RTT ") for one in found)
        return cls(key, title.format(*heads), unit or found[0].unit, _TOLERANCES.get(names[0]))


AGAIN = Path(__file__).parent / "linux" / "again.json"
"""The figures of Linux's other runs of the scenarios, a list per scenario with an entry per seed; see backend.py."""

RECORDED = {"experiment.warmup": "0 s", "record.packets": True}
"""Linux's figures cover the time after the warm-up for the queue, but the whole run for all else: each is cut here."""
SCENARIOS_HELP = "parts of the names of those to run; default: all"

_TOLERANCES = {**TOLERANCES, "timeouts": Tolerance(0.25, 5.0), "startup_peak_ms": Tolerance(0.20, 0.0)}
METRICS = (
    Metric.of("p50_ms", "sojourn {}", "sojourn_p50_ms"),
    Metric.of("p95_ms", "sojourn {}", "sojourn_p95_ms"),
    Metric.of("mean_ms", "sojourn {}", "sojourn_mean_ms"),
    Metric.of("goodput_mbps", "{}", "goodput_bps"),
    Metric.of("drops_and_marks", "{} + {}", "dropped_packets", "marked_packets", unit="packets"),
    Metric.of("retransmits", "{}", "retransmits", unit="segments"),
    Metric.of("timeouts", "{}", "timeouts"),
    Metric.of("startup_peak_ms", "{} peak", "startup_peak_ms"),
    Metric.of("ping_p50_ms", "ping {}", "rtt_p50_ms"),
    Metric.of("ping_p95_ms", "ping {}", "rtt_p95_ms"),
)
JUDGED = tuple(metric for metric in METRICS if metric.tolerance is not None)


@dataclass(frozen=True)
class Comparison:
    """A metric of one scenario in two samples, a value per seed: the reference's, which may have one, and ours."""

    metric: Metric
    reference: tuple[float, ...]
    values: tuple[float, ...]

    @property
    def linux(self) -> float:
        """What ours is compared with."""
        return statistics.median(self.reference)

    @property
    def median(self) -> float:
        """What is compared with Linux."""
        return statistics.median(self.values)

    @property
    def within(self) -> bool | None:
        """Whether the medians agree; None if the metric is not judged."""
        return None if self.metric.tolerance is None else self.distance(self.median) <= 1

    def distance(self, value: float) -> float:
        """A value's error in tolerances: 1 is the largest that agrees. The metric must be one that is judged."""
        assert self.metric.tolerance is not None
        linux = self.linux
        bound, error = self.metric.tolerance.bound(linux), abs(value - linux)
        return error / bound if bound else math.inf if error else 0.0

    def error(self, value: float) -> float | None:
        """A value's error as a share of Linux's figure; None if that is zero."""
        return value / self.linux - 1 if self.linux else None


def compare(
    reference: Sequence[Figures], ours: Sequence[Figures], metrics: Sequence[Metric] = METRICS
) -> list[Comparison]:
    """The metrics that all runs of both have."""
    found = []
    for metric in metrics:
        samples = [tuple(run.get(metric.key) for run in runs) for runs in (reference, ours)]
        if all(sample and None not in sample for sample in samples):
            found.append(Comparison(metric, *samples))  # type: ignore[arg-type]
    return found


def over_seeds(values: Sequence[float], show: Callable[[float], str], to: str = "–") -> str:
    """The median, with the least and the greatest."""
    median, least, greatest = (show(of(values)) for of in (statistics.median, min, max))
    return f"{median} ({least}{to}{greatest})"


def verdict(comparisons: Iterable[Comparison]) -> str:
    """``within``, or the judged metrics that are off."""
    return ", ".join(f"{one.metric.title} off" for one in comparisons if one.within is False) or "within"


def mean_distance(comparisons: list[Comparison], figures: Figures | None = None) -> float:
    """Mean error in tolerances over the judged metrics: of our medians, or of another simulator's figures."""
    distances = []
    for one in comparisons:
        if one.metric in JUDGED:
            value = one.median if figures is None else figures.get(one.metric.key)
            if value is not None:
                distances.append(one.distance(value))
    return statistics.mean(distances)


def chosen(options: argparse.ArgumentParser, parts: Sequence[str], known: Iterable[str]) -> list[str]:
    """The scenarios whose names have one of these parts, all without any; ends the program if there are none."""
    names = [name for name in known if not parts or any(part in name for part in parts)]
    if not names:
        options.error(f"scenarios: got {' '.join(parts)}; must be part of one of {', '.join(known)}")
    return names


def rounded(figures: Figures) -> Figures:
    """Figures with as many digits as matter."""
    return {key: None if value is None else float(f"{value:.6g}") for key, value in figures.items()}


def linux_figures(measured: dict[str, Any]) -> Figures:
    """The metrics of an entry of ``linux/figures.json``."""
    sojourn, ping = measured["sojourn_ms"], measured["ping_ms"] or {}
    return {
        "p50_ms": sojourn["p50"],
        "p95_ms": sojourn["p95"],
        "mean_ms": sojourn["mean"],
        "goodput_mbps": measured["received_bytes"] * 8e-6 / measured["window_s"][1],
        "drops_and_marks": measured["dropped"] + measured["marked"],
        "retransmits": measured["retransmits"],
        "timeouts": measured.get("timeouts"),
        "startup_peak_ms": measured["startup_peak_ms"],
        "ping_p50_ms": ping.get("p50"),
        "ping_p95_ms": ping.get("p95"),
    }


def our_figures(run: Run, window_s: tuple[float, float]) -> Figures:
    """The metrics of a run with ``RECORDED``.

    Sojourn times are of the packets that left within ``window_s``; everything else covers the whole run.
    """
    summary, packets = run.summary, Departures.of(run)
    steady, early = packets.within(*window_s), packets.within(0.0, window_s[0])
    down, flows = summary["bottleneck"]["down"], summary["flows"]
    ping: dict[str, float] = next((flow["rtt_ms"] for flow in flows if flow["kind"] == "ping"), {})
    return {
        "p50_ms": quantile(steady, 0.50) if steady.size else None,
        "p95_ms": quantile(steady, 0.95) if steady.size else None,
        "mean_ms": float(steady.mean()) if steady.size else None,
        "goodput_mbps": sum(flow["received_bytes"] for flow in flows if flow["kind"] != "ping") * 8e-6 / window_s[1],
        "drops_and_marks": down["dropped_aqm"] + down["dropped_overflow"] + down["marked"],
        "retransmits": sum(flow["retransmits"] for flow in flows),
        "timeouts": summary["timeouts"],
        "startup_peak_ms": float(early.max()) if early.size else None,
        "ping_p50_ms": ping.get("p50"),
        "ping_p95_ms": ping.get("p95"),
    }


@dataclass(frozen=True)
class Departures:
    """The packets that left the bottleneck, in order."""

    at_s: FloatArray
    sojourn_ms: FloatArray

    @classmethod
    def of(cls, run: Run) -> Departures:
        """Those of the forward direction in a run that recorded packets."""
        packets = delivered(run, "down")
        assert packets is not None
        return cls(numbers(packets, "time_ns") / 1e9, numbers(packets, "sojourn_ns") / 1e6)

    def within(self, begin_s: float, end_s: float) -> FloatArray:
        """Sojourn times in ms of those that left from ``begin_s`` on and before ``end_s``."""
        first, last = np.searchsorted(self.at_s, [begin_s, end_s])
        return self.sojourn_ms[first:last]

    def means_ms(self, bins: int, width_s: float) -> FloatArray:
        """Mean sojourn time in each of the first bins; NaN for one in which nothing left."""
        shown = self.at_s < bins * width_s
        which = (self.at_s[shown] / width_s).astype(int)
        counts = np.bincount(which, minlength=bins).astype(float)
        counts[counts == 0] = np.nan
        totals = np.bincount(which, weights=self.sojourn_ms[shown], minlength=bins).astype(float)
        return np.asarray(totals / counts, dtype=np.float64)


def read_figures(path: Path) -> dict[str, dict[str, float]]:
    """Another simulator's figures: a CSV with a row per scenario and a column per metric."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {row.pop("scenario"): {key: float(value) for key, value in row.items()} for row in rows}
