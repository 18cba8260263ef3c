"""The names, formats and widths of the figures of results, known without drawing them."""

from __future__ import annotations

FORMATS = ("png", "svg", "pdf")
DEFAULT_FORMATS = ("png",)
"""The formats in which an experiment's figures are saved if none is asked for."""

WIDTHS_IN = {"column": 3.5, "page": 7.16}
"""The widths of one and two columns of a paper (IEEE's), in inches."""

OVER = "over_"
"""Prefix of the name of a figure over a swept key."""
MOST_ARMS = 24
"""Most arms for which the figures of single arms are drawn by default."""

OF_QUEUE = ("sojourn_cdf", "sojourn_box", "goodput_delay_ellipse", "goodput_delay_scatter", "sojourn_over_time")
"""Figures of a queue; with several links their names end in that of the queue, ``_home_down``."""
_OF_WAYS = (*OF_QUEUE, "goodput_bars", "goodput_over_time", "station_latency", "aggregates")
FIGURES = (*_OF_WAYS, *(f"{name}_up" for name in _OF_WAYS), "overview", "airtime", "timeline", "windows_over_time")
"""All figures except those over swept keys, without the suffixes of ``FORMATS``."""
