"""Wi-Fi in results: a table of the stations, and every transmission."""

from __future__ import annotations

from sojourn.frame.metrics import stations
from sojourn.frame.registry import Declared, declared
from sojourn.frame.results import Arm, Results
from sojourn.frame.statistics import interval_note, median_interval
from sojourn.page.tables import Sheet, interval_text, repeats_of, swept_keys, words_of


def stations_sheet(results: Results) -> Sheet | None:
    """One row per arm and station; None without Wi-Fi."""
    swept = swept_keys(results)
    rows = [
        (*words_of(arm, swept), name, *(_cell(arm, name, metric) for metric in declared("station")))
        for arm in results.arms
        for name in stations(arm.runs[0].summary)
    ]
    if not rows:
        return None
    caption = (
        "airtime: of frames and their acknowledgements; frames: per transmission; Mbit/s: of IP packets; retries and "
        f"lost count the whole run; {interval_note(*repeats_of(results))}"
    )
    headings = ("queue", *swept, "station", *(metric.heading for metric in declared("station")))
    return Sheet("Wi-Fi stations", caption, headings, tuple(rows), 2 + len(swept))


def _cell(arm: Arm, name: str, metric: Declared) -> str:
    values = [metric.of(stations(run.summary)[name]) / metric.per for run in arm.runs]
    return interval_text(median_interval(values), metric.digits)
