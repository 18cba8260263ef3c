"""The course of a link: its rates and delay over time, as an experiment file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sojourn.files import bounded
from sojourn.frame.statistics import three_digits
from sojourn.frame.swept import as_toml

OPPORTUNITY_BITS = 1514 * 8  # what a line of a trace may send, with an Ethernet header
LARGEST_TRACE = 100 * bounded.MEGABYTE
LONGEST_S = 60.0  # the longest run of an imported link, unless the user says otherwise
SHORTEST_S = 10.0
LEAST_RTT_MS = 10
UNKNOWN_RTT_MS = 40  # the base RTT of traffic over a recording without a delay

Steps = Sequence[tuple[float, float]]
"""A value from each time in seconds on; the first time is 0."""


@dataclass(frozen=True)
class Course:
    """A link over time. A direction has rates in bit/s, or a trace in mahimahi's format, or is not known."""

    source: str
    seconds: float
    down: Steps | str
    up: Steps | str = ()
    delay_ms: Steps = ()
    """One-way delay without queues."""

    def keys(self, later_s: float = 0.0) -> dict[str, object]:
        """The values of ``rate``, ``up.rate`` and ``delay`` in a file, as far as they are known.

        Whatever changes does so ``later_s`` later; a trace repeats, so that it needs no such time.
        """
        found = {"rate": _rate(self.down, later_s)}
        if self.up:
            found["up.rate"] = _rate(self.up, later_s)
        if self.delay_ms:
            found["delay"] = _schedule([(at, f"{three_digits(value)} ms") for at, value in self.delay_ms], later_s)
        return found

    def rtt_ms(self) -> int:
        """A base RTT for traffic: twice the least delay, rounded up, at least ``LEAST_RTT_MS``."""
        if not self.delay_ms:
            return UNKNOWN_RTT_MS
        return max(LEAST_RTT_MS, math.ceil(2 * min(delay for _, delay in self.delay_ms)))


def merged(steps: Sequence[tuple[float, float]]) -> Steps:
    """The steps without those that repeat the value before; the first is at 0."""
    kept: list[tuple[float, float]] = []
    for at, value in steps:
        if not kept or value != kept[-1][1]:
            kept.append((round(at - steps[0][0], 3), value))
    return kept


def experiment(course: Course, duration_s: float | None = None) -> str:
    """An experiment file with the link, two queues and bulk TCP; ``sojourn run`` accepts it."""
    long = duration_s or min(max(course.seconds, SHORTEST_S), LONGEST_S)
    seconds = f"{long:.9f}".rstrip("0").rstrip(".")  # The format has no exponents.
    keys = course.keys()
    why = f"twice the recorded delay, at least {LEAST_RTT_MS} ms" if course.delay_ms else "the recording has none"
    up, both = (" in both directions", '\ndirection = "both"') if "up.rate" in keys else ("", "")
    link = "\n".join(table("[link]", {**keys, "buffer": "1000 packets"}))
    return f"""\
# From {course.source}; with bulk TCP{up}. Queues and traffic are yours to change.
[experiment]
name     = {json.dumps(course.source)}
duration = "{seconds} s"

{link}
[[queue]]
aqm = "pfifo"

[[queue]]
aqm = "fq_codel"

[[traffic]]
kind  = "bulk"
flows = 4
rtt   = "{course.rtt_ms()} ms"   # {why}: yours to change{both}
"""


def table(head: str, keys: Mapping[str, object]) -> list[str]:
    """The lines of a table of a file, with an empty one after it."""
    return [head, *(f"{key} = {as_toml(value)}" for key, value in keys.items()), ""]


def mean_bps(direction: Steps | str, seconds: float, folder: Path) -> float:
    """The mean rate of a direction, of which a trace has 1500 bytes and an Ethernet header per line."""
    if isinstance(direction, str):
        lines = bounded.read_bytes(folder / direction, LARGEST_TRACE).split()
        return len(lines) * OPPORTUNITY_BITS / (seconds or 1.0)
    ends = [*(at for at, _ in direction[1:]), max(seconds, direction[-1][0])]
    spent = [(end - at, rate) for (at, rate), end in zip(direction, ends, strict=True)]
    total = sum(span for span, _ in spent)
    return sum(span * rate for span, rate in spent) / total if total else direction[0][1]


def _rate(direction: Steps | str, later_s: float) -> object:
    if isinstance(direction, str):
        return {"trace": direction}
    return _schedule([(at, f"{max(1, round(bps / 1000))} kbit/s") for at, bps in direction], later_s)


def _schedule(steps: Sequence[tuple[float, str]], later_s: float) -> object:
    if len(steps) == 1:
        return steps[0][1]
    return [(f"{at and at + later_s:g} s", value) for at, value in steps]
