"""Time series, per-packet values and transmissions on Wi-Fi from the recorded tables, in the units of figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np

from sojourn.frame.arrow import numbers
from sojourn.frame.later import npt, pa, pc
from sojourn.frame.results import Direction, Run
from sojourn.frame.statistics import FloatArray

DIRECTIONS: dict[str, int] = {"down": 0, "up": 1}
"""The ``direction`` column of recorded tables."""
FATES = {
    "delivered": 0,
    "marked": 1,
    "dropped by the algorithm": 2,
    "dropped for lack of room": 3,
    "dropped, reason unknown": 4,
}
"""The ``fate`` column of recorded packets."""
ACCESS_POINT = "access point"


Outcome = Literal["answered", "unanswered", "collision"]
OUTCOMES = get_args(Outcome)
"""The outcomes of a transmission, by their number in a recorded table."""


class Series(NamedTuple):
    """Values over time."""

    t_s: FloatArray
    value: FloatArray


class Passages(NamedTuple):
    """Packets that passed a queue, in order of departure."""

    arrival_s: FloatArray
    departure_s: FloatArray
    bits: FloatArray


def goodput(run: Run, direction: Direction = "down", *, traffic: int | None = None) -> Series | None:
    """Total goodput in bit/s of all flows in this direction, at the middle of each bin.

    With ``traffic``, only of the flows of that ``[[traffic]]`` entry. None if no series was recorded.
    """
    found = _flows(run, "goodput_bps", direction, traffic)
    return None if found is None else Series(found[0], np.nansum(found[1], axis=1))


def received(run: Run, direction: Direction = "down", *, traffic: int | None = None) -> Series | None:
    """Total payload in bytes received until each bin's end, at the middle of the bin; as ``goodput``."""
    found = goodput(run, direction, traffic=traffic)
    if found is None or found.t_s.size < 2:
        return found
    return Series(found.t_s, np.cumsum(found.value) * (found.t_s[1] - found.t_s[0]) / 8.0)


def rtt(run: Run, direction: Direction = "down", *, traffic: int | None = None) -> Series | None:
    """Round-trip time in ms within each bin: the mean over the flows that measured one, else NaN; as ``goodput``."""
    found = _flows(run, "rtt_ms", direction, traffic)
    if found is None:
        return None
    start_s, values = found
    measured = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return Series(start_s, np.nansum(values, axis=1) / measured.sum(axis=1))


def round_trips(run: Run, direction: Direction = "down", *, traffic: int | None = None) -> Series | None:
    """Every recorded round-trip time in ms, flow by flow, at the time of its end; as ``goodput``."""
    table = run.rtts()
    if table is None:
        return None
    own = _wanted(run, direction, traffic)[numbers(table, "flow")]
    return Series(numbers(table, "time_ns")[own] / 1e9, numbers(table, "rtt_ns")[own] / 1e6)


def downloads(run: Run, direction: Direction = "down", *, traffic: int | None = None) -> FloatArray:
    """The time in ms of each file or response completed after the warm-up; none for runs read from a directory."""
    table = run.read_table("completions")
    if table is None:
        return np.empty(0)
    own = _wanted(run, direction, traffic)[numbers(table, "flow")]
    return cast("FloatArray", numbers(table, "completion_ns")[own] / 1e6)


def _flows(run: Run, column: str, direction: Direction, traffic: int | None) -> tuple[FloatArray, FloatArray] | None:
    """The middle of each bin, and a column of the flows' series: a row per bin, a column per flow."""
    table = run.flow_series()
    if table is None:
        return None
    wanted = _wanted(run, direction, traffic)
    # Rows are ordered by bin, with every flow in each bin.
    values = numbers(table, column).reshape(-1, len(wanted))[:, wanted]
    return _middle(numbers(table, "time_s")[:: len(wanted)]), values.astype(np.float64)


def _wanted(run: Run, direction: Direction, traffic: int | None) -> npt.NDArray[np.bool_]:
    """Whether each flow is in this direction, and of that ``[[traffic]]`` entry if one is given."""
    flows = run.summary["flows"]
    return np.array([flow["direction"] == direction and traffic in (None, flow["traffic"]) for flow in flows], bool)


def sojourn(run: Run, queue: str = "down") -> Series | None:
    """Mean sojourn time in ms of the packets that left the queue in each bin, NaN for none; None without series."""
    return queue_column(run, "sojourn_mean_ms", queue)


def queue_column(run: Run, column: str, queue: str = "down") -> Series | None:
    """A column of the queue's series, at the middle of each bin; None if that was not recorded."""
    table = run.queue_series()
    if table is None or column not in table.column_names:
        return None
    this_way = rows_of_queue(run, table, queue)
    start_s = numbers(table, "time_s")[this_way]
    return Series(_middle(start_s), numbers(table, column)[this_way].astype(np.float64))


def passages(run: Run, queue: str = "down") -> Passages | None:
    """The arrival, departure and size of each packet that left the queue; None if packets were not recorded."""
    rows = delivered(run, queue)
    if rows is None:
        return None
    departure_ns, sojourn_ns = numbers(rows, "time_ns"), numbers(rows, "sojourn_ns")
    return Passages((departure_ns - sojourn_ns) / 1e9, departure_ns / 1e9, numbers(rows, "bytes") * 8.0)


def delay_at_drops(run: Run, queue: str = "down") -> Series | None:
    """The delay in ms at each drop, that of the next packet to enter a FIFO; None without recorded packets."""
    rows, table = delivered(run, queue), run.packets()
    if rows is None or table is None:
        return None
    sojourn_ns = numbers(rows, "sojourn_ns")
    arrival_ns = numbers(rows, "time_ns") - sojourn_ns
    this_way = rows_of_queue(run, table, queue)
    dropped_ns = numbers(table, "time_ns")[this_way & (numbers(table, "fate") > FATES["marked"])]
    following = np.searchsorted(arrival_ns, dropped_ns)
    known = following < arrival_ns.size
    return Series(dropped_ns[known] / 1e9, sojourn_ns[following[known]] / 1e6)


def flow_sojourn(run: Run, flow: int) -> Series | None:
    """Sojourn time in ms of every data packet of a flow, by departure; None if packets were not recorded."""
    rows = delivered(run, "down")
    if rows is None:
        return None
    own = (numbers(rows, "flow") == flow) & (numbers(rows, "returning") == 0)
    return Series(numbers(rows, "time_ns")[own] / 1e9, numbers(rows, "sojourn_ns")[own] / 1e6)


def steady_sojourn(run: Run, queue: str, *, traffic: int | None = None) -> FloatArray | None:
    """Sojourn times in ms of all packets, or a ``traffic``'s data, after the warm-up; None without recorded packets."""
    rows = delivered(run, queue)
    if rows is None:
        return None
    # They are the last packets; the summary has their number.
    count = run.sojourn_ms(queue)["n"]
    rows = rows.slice(rows.num_rows - count)
    sojourn_ms = numbers(rows, "sojourn_ns") / 1e6
    if traffic is None:
        return sojourn_ms
    flows = np.array([flow["traffic"] == traffic for flow in run.summary["flows"]])
    own: npt.NDArray[np.bool_] = flows[numbers(rows, "flow")] & (numbers(rows, "returning") == 0)
    return sojourn_ms[own]


def histogram(run: Run, queue: str) -> tuple[FloatArray, FloatArray] | None:
    """(upper edges in ms, packets at or below each) of the sojourn times after the warm-up; None without histograms."""
    table = run.histogram()
    if table is None:
        return None
    this_way = rows_of_queue(run, table, queue)
    edges = numbers(table, "sojourn_ms")[this_way].astype(np.float64)
    return edges, np.cumsum(numbers(table, "packets")[this_way]).astype(np.float64)


def delivered(run: Run, queue: str) -> pa.Table | None:
    """The recorded packets that left a queue, in order of departure."""
    table = run.packets()
    if table is None:
        return None
    left = pc.less_equal(table["fate"], FATES["marked"])
    return table.filter(pc.and_(left, pa.array(rows_of_queue(run, table, queue))))


def rows_of_queue(run: Run, table: pa.Table, queue: str) -> npt.NDArray[np.bool_]:
    """Selects the rows of a recorded table that belong to one of ``Results.queues``."""
    name, _, way = queue.rpartition("/")
    of_way: npt.NDArray[np.bool_] = numbers(table, "direction") == DIRECTIONS[way]
    links = list(run.summary["links"])
    if len(links) < 2:
        return of_way
    of_link: npt.NDArray[np.bool_] = numbers(table, "link") == links.index(name or run.summary["bottleneck_link"])
    return of_way & of_link


def binned(found: Series, bin_s: float) -> Series:
    """The means over longer bins, each at the middle of its bin; NaN values are ignored."""
    known = ~np.isnan(found.value)
    bins, index = np.unique(np.floor(found.t_s[known] / bin_s).astype(np.int64), return_inverse=True)
    means: FloatArray = (np.bincount(index, found.value[known]) / np.bincount(index)).astype(np.float64)
    return Series(((bins + 0.5) * bin_s).astype(np.float64), means)


def aligned(several: Sequence[Series]) -> tuple[FloatArray, FloatArray]:
    """(times, a row of values per series); NaN where a series has none."""
    t_s = np.unique(np.concatenate([one.t_s for one in several]))
    values = np.full((len(several), t_s.size), np.nan)
    for row, one in zip(values, several, strict=True):
        row[np.searchsorted(t_s, one.t_s)] = one.value
    return t_s, values


def _middle(start_s: FloatArray) -> FloatArray:
    half_s = (start_s[1] - start_s[0]) / 2 if start_s.size > 1 else 0.0
    return start_s + half_s


@dataclass(frozen=True)
class Transmissions:
    """Transmissions of a cell, in the order in which they ended."""

    stations: tuple[str, ...]
    sender: npt.NDArray[np.int64]
    """0: the access point; from 1 on, the stations."""
    station: npt.NDArray[np.int64]
    """The station that it was sent to or by, from 1 on."""
    outcome: npt.NDArray[np.int64]
    frames: npt.NDArray[np.int64]
    waiting_since_s: npt.NDArray[np.float64]
    """When its sender began to contend for the medium."""
    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]

    def of_sender(self, name: str) -> Transmissions:
        """Those of ``ACCESS_POINT`` or of a station."""
        return self._only(self.sender == (0 if name == ACCESS_POINT else self._number(name)))

    def of_station(self, name: str) -> Transmissions:
        """Those to or from a station."""
        return self._only(self.station == self._number(name))

    def where(self, outcome: Outcome) -> Transmissions:
        """Those with this outcome."""
        return self._only(self.outcome == OUTCOMES.index(outcome))

    def within(self, from_s: float, until_s: float) -> Transmissions:
        """Those that their sender contended for, or sent, in this part of a run."""
        return self._only((self.end_s > from_s) & (self.waiting_since_s < until_s))

    def waits(self) -> Transmissions:
        """The times before them in which their senders contended, as if these were transmissions."""
        return replace(self, start_s=self.waiting_since_s, end_s=self.start_s)

    def frames_of(self, name: str, direction: Direction) -> npt.NDArray[np.int64]:
        """The number of frames of each transmission to (down) or from (up) a station."""
        own = self.of_station(name)
        return own._only((own.sender == 0) == (direction == "down")).frames

    def _number(self, name: str) -> int:
        return self.stations.index(name) + 1

    def _only(self, which: npt.NDArray[np.bool_]) -> Transmissions:
        return Transmissions(self.stations, *(getattr(self, one.name)[which] for one in fields(self)[1:]))


def transmissions(run: Run, link: str) -> Transmissions | None:
    """The transmissions on a link; None unless ``[record] medium = true``."""
    table = run.medium()
    if table is None:
        return None
    links = run.summary["links"]
    own = numbers(table, "link") == list(links).index(link)
    names = ("sender", "station", "outcome", "frames", "waiting_since_ns", "start_ns", "end_ns")
    columns: dict[str, Any] = {name: np.asarray(numbers(table, name)[own], dtype=np.int64) for name in names}
    in_units = [column / 1e9 if name.endswith("_ns") else column for name, column in columns.items()]
    return Transmissions(tuple(links[link]["stations"]), *in_units)
