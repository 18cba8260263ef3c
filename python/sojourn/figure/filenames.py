"""The names of the figures of results, known without drawing them."""

from __future__ import annotations

FORMATS = ("png", "svg", "pdf")
"""The file formats of figures."""
DEFAULT_FORMATS = ("png",)
"""The formats in which an experiment's figures are saved if none is asked for."""

CDF = "sojourn_cdf"
BOX = "sojourn_box"
ELLIPSE = "goodput_delay_ellipse"
SCATTER = "goodput_delay_scatter"
BARS = "goodput_bars"
SOJOURN_SERIES = "sojourn_over_time"
GOODPUT_SERIES = "goodput_over_time"
OVERVIEW = "overview"
AIRTIME = "airtime"
STATION_LATENCY = "station_latency"
AGGREGATES = "aggregates"
TIMELINE = "timeline"
WINDOWS = "windows_over_time"
OVER = "over_"
"""Prefix of the name of a figure over a swept key."""
MOST_ARMS = 24
"""Most arms for which the figures of single arms are drawn by default."""

OF_QUEUE = (CDF, BOX, ELLIPSE, SCATTER, SOJOURN_SERIES)
"""Figures of a queue; with several links their names end in that of the queue, ``_home_down``."""
FIGURES = (
    *(
        f"{name}{suffix}"
        for name in (CDF, BOX, ELLIPSE, SCATTER, BARS, SOJOURN_SERIES, GOODPUT_SERIES, STATION_LATENCY, AGGREGATES)
        for suffix in ("", "_up")
    ),
    OVERVIEW,
    AIRTIME,
    TIMELINE,
    WINDOWS,
)
"""All figures except those over swept keys, without the suffixes of ``FORMATS``."""
