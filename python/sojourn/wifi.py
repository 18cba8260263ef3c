"""What went over the air, station by station: a table beside those of queues and traffic."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from sojourn.schema import Station
from sojourn.statistics import interval_note, median_interval
from sojourn.tables import PLAIN_WIDTH, Sheet, fitting, interval_text, repeats_of, swept_keys

if TYPE_CHECKING:
    from sojourn.results import Arm, Results, Run


@dataclass(frozen=True)
class _Column:
    heading: str
    value: Callable[[Station], float | None]
    digits: int


_COLUMNS = (
    _Column("airtime %", lambda station: station["airtime_share"] * 100, 1),
    _Column("down Mbit/s", lambda station: station["down"]["goodput_bps"] / 1e6, 2),
    _Column("up Mbit/s", lambda station: station["up"]["goodput_bps"] / 1e6, 2),
    _Column("frames down", lambda station: station["down"]["aggregate_frames"], 1),
    _Column("frames up", lambda station: station["up"]["aggregate_frames"], 1),
    _Column("retries", lambda station: station["retries"], 0),
    _Column("lost", lambda station: station["lost_packets"], 0),
)


def stations(run: Run) -> dict[str, Station]:
    """The stations of a run by name; with several links ``wifi/phone`` and so on."""
    links = run.summary.get("links", {})
    return {
        station if len(links) < 2 else f"{name}/{station}": figures
        for name, link in links.items()
        for station, figures in link.get("stations", {}).items()
    }


def stations_sheet(results: Results) -> Sheet | None:
    """One row per arm and station; None without Wi-Fi."""
    swept = swept_keys(results)
    rows = [
        (
            arm.label,
            *(str(arm.set.get(key, "")) for key in swept),
            name,
            *(_cell(arm, name, column) for column in _COLUMNS),
        )
        for arm in results.arms
        for name in stations(arm.runs[0])
    ]
    if not rows:
        return None
    caption = (
        "airtime: of frames and their acknowledgements; frames: per transmission; Mbit/s: of IP packets; retries and "
        f"lost count the whole run; {interval_note(repeats_of(results))}"
    )
    headings = ("queue", *swept, "station", *(column.heading for column in _COLUMNS))
    return Sheet("On the air", caption, headings, tuple(rows), 2 + len(swept))


def stations_table(results: Results, *, width: int = PLAIN_WIDTH, rows: int | None = None) -> Table | None:
    """``stations_sheet`` for a terminal; where it is too wide, columns go from the right; None beyond ``rows``."""
    sheet = stations_sheet(results)
    return None if sheet is None or (rows is not None and len(sheet.rows) > rows) else fitting(sheet, width)


def _cell(arm: Arm, name: str, column: _Column) -> str:
    values = (column.value(stations(run)[name]) for run in arm.runs)
    return interval_text(median_interval([math.nan if value is None else value for value in values]), column.digits)
