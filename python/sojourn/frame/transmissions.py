"""Every transmission on a medium of Wi-Fi, from its recorded table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sojourn.frame.arrow import numbers
from sojourn.frame.later import np, npt
from sojourn.frame.results import Direction, Run

ACCESS_POINT = "access point"


OUTCOMES = ("answered", "unanswered", "collision")
"""The outcomes of a transmission, by their number in a recorded table."""


Outcome = Literal["answered", "unanswered", "collision"]


@dataclass(frozen=True)
class Transmissions:
    """Transmissions of a cell, in the order in which they ended."""

    stations: tuple[str, ...]
    """The names of the cell's stations."""
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
    """The end of the answer."""

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
        return Transmissions(
            self.stations, self.sender, self.station, self.outcome, self.frames, self.waiting_since_s,
            self.waiting_since_s, self.start_s,
        )  # fmt: skip

    def frames_of(self, name: str, direction: Direction) -> npt.NDArray[np.int64]:
        """The number of frames of each transmission to (down) or from (up) a station."""
        own = self.of_station(name)
        return own._only((own.sender == 0) == (direction == "down")).frames

    def _number(self, name: str) -> int:
        return self.stations.index(name) + 1

    def _only(self, which: npt.NDArray[np.bool_]) -> Transmissions:
        return Transmissions(
            self.stations, self.sender[which], self.station[which], self.outcome[which], self.frames[which],
            self.waiting_since_s[which], self.start_s[which], self.end_s[which],
        )  # fmt: skip


def transmissions(run: Run, link: str) -> Transmissions | None:
    """The transmissions on a link; None unless ``[record] medium = true``."""
    table = run.medium()
    if table is None:
        return None
    links = run.summary["links"]
    own = numbers(table, "link") == list(links).index(link)

    def whole(name: str) -> npt.NDArray[np.int64]:
        return np.asarray(numbers(table, name)[own], dtype=np.int64)

    def seconds(name: str) -> npt.NDArray[np.float64]:
        return np.asarray(whole(name) / 1e9, dtype=np.float64)

    return Transmissions(
        stations=tuple(links[link]["stations"]),
        sender=whole("sender"),
        station=whole("station"),
        outcome=whole("outcome"),
        frames=whole("frames"),
        waiting_since_s=seconds("waiting_since_ns"),
        start_s=seconds("start_ns"),
        end_s=seconds("end_ns"),
    )
