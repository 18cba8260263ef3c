"""What a study measures of a run: a distribution, a series, a number, of which statistics are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sojourn import series
from sojourn.metrics import goodput_bps
from sojourn.results import Run
from sojourn.series import Series
from sojourn.statistics import FloatArray, quantile_curve

NAMED_QUANTILES = {"median": 0.5, "min": 0.0, "max": 1.0}


@dataclass(frozen=True)
class Quantiles:
    """A distribution known by its quantiles and its mean."""

    levels: FloatArray
    values: FloatArray
    mean: float

    def statistic(self, name: str) -> float:
        """``mean``, ``median``, ``min``, ``max`` or ``p`` and a percentage; NaN for any other."""
        if name == "mean":
            return self.mean
        level = quantile_level(name)
        return math.nan if level is None or not self.values.size else float(np.interp(level, self.levels, self.values))


@dataclass(frozen=True)
class Values:
    """A distribution known by all its values."""

    values: FloatArray

    def statistic(self, name: str) -> float:
        """As of ``Quantiles``, and ``std``."""
        if not self.values.size:
            return math.nan
        if name in ("mean", "std"):
            return float(self.values.mean() if name == "mean" else self.values.std())
        level = quantile_level(name)
        return math.nan if level is None else float(np.quantile(self.values, level))


@dataclass(frozen=True)
class Single:
    """One number per run, which is its own value, mean, median and total."""

    value: float

    def statistic(self, name: str) -> float:
        """The number; NaN for what one number does not have."""
        return self.value if name in ("value", "mean", "median", "total", "count") else math.nan


Sample = Quantiles | Values | Single


def quantile_level(statistic: str) -> float | None:
    """0.9 for ``p90``, 0.5 for ``median``; None if the statistic is no quantile."""
    if statistic in NAMED_QUANTILES:
        return NAMED_QUANTILES[statistic]
    percent = statistic.removeprefix("p").replace("_", ".")
    return float(percent) / 100.0 if statistic[:1] == "p" and percent.replace(".", "", 1).isdigit() else None


@dataclass(frozen=True)
class Measure:
    """A metric of a study: where it comes from, and how it is put in the paper's terms."""

    name: str
    source: str
    """One of ``SOURCES``."""
    unit: str
    label: str
    """What figures call it."""
    factor: float = 1.0
    """From the source's unit and convention to the paper's."""
    plus: str | None = None
    """An axis or constant whose value is added: a base RTT makes a queueing delay a round-trip time."""

    def sample(self, run: Run) -> Sample:
        """What was measured in a run, in the source's unit."""
        return SOURCES[self.source](run)

    def statistic(self, run: Run, name: str, place: Mapping[str, float | bool | str]) -> float:
        """A statistic in ``unit``, for a run at a place of the grid; NaN if the run has no such thing."""
        offset = float(place[self.plus]) if self.plus is not None and _is_location(name) else 0.0
        return self.sample(run).statistic(name) * self.factor + offset

    def series(self, run: Run, place: Mapping[str, float | bool | str]) -> Series | None:
        """The metric over time in ``unit``; None if the source has no series or none was recorded."""
        read = SERIES.get(self.source)
        found = read(run) if read is not None else None
        if found is None:
            return None
        offset = float(place[self.plus]) if self.plus is not None else 0.0
        return Series(found.t_s, found.value * self.factor + offset)


def _is_location(statistic: str) -> bool:
    return statistic == "mean" or quantile_level(statistic) is not None


def _sojourn_ms(run: Run) -> Sample:
    distribution = run.sojourn_ms()
    if not distribution["n"]:
        return Quantiles(np.empty(0), np.empty(0), math.nan)
    values, levels = quantile_curve(distribution)
    return Quantiles(levels, values, distribution["mean"])


def _goodput_series_bps(run: Run) -> Sample:
    goodput = series.goodput(run)
    return Values(np.empty(0) if goodput is None else goodput.value)


def _first_flow_sojourn_ms(run: Run) -> Sample:
    sojourn = series.flow_sojourn(run, 0)
    return Values(np.empty(0) if sojourn is None else sojourn.value)


def _first_flow_jitter_ms(run: Run) -> Sample:
    # Jitter: the mean absolute difference between one packet's delay and the next one's.
    sojourn = series.flow_sojourn(run, 0)
    return Values(np.empty(0) if sojourn is None else np.abs(np.diff(sojourn.value)))


SOURCES: dict[str, Callable[[Run], Sample]] = {
    "sojourn_ms": _sojourn_ms,
    "goodput_series_bps": _goodput_series_bps,
    "goodput_bps": lambda run: Single(goodput_bps(run.summary, "down")),
    "utilization": lambda run: Single(run.summary["bottleneck"]["down"]["utilization"]),
    "drops": lambda run: Single(
        run.summary["bottleneck"]["down"]["dropped_aqm"] + run.summary["bottleneck"]["down"]["dropped_overflow"]
    ),
    "marks": lambda run: Single(run.summary["bottleneck"]["down"]["marked"]),
    "jain_goodput": lambda run: Single(
        math.nan if run.summary["jain_goodput"] is None else run.summary["jain_goodput"]
    ),
    "first_flow_sojourn_ms": _first_flow_sojourn_ms,
    "first_flow_jitter_ms": _first_flow_jitter_ms,
}
"""Everything that a study may measure, by the name that its recipe uses."""

SERIES: dict[str, Callable[[Run], Series | None]] = {
    "sojourn_ms": series.sojourn,
    "goodput_series_bps": series.goodput,
    "first_flow_sojourn_ms": lambda run: series.flow_sojourn(run, 0),
}
"""The sources that can be drawn over time."""
