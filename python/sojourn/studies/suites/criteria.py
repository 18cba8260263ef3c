"""Criteria of the test cases for congestion controls: what a run must show, from its series or from its sender's qlog.

A criterion of the sender's state reads phases and variables as the sender recorded them after every acknowledgement, by
the names of draft-ietf-ccwg-bbr. The answer is None where a run did not get to what the criterion is about.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import isfunction
from itertools import groupby, pairwise
from typing import Any

import msgspec
import numpy as np

from sojourn.frame.arrow import numbers
from sojourn.frame.results import Run

Answer = bool | None
MSS, FRAME = 1448, 1514
"""Payload of a full segment, and its bytes on the link."""
DOWN, UP, CRUISE, REFILL = (f"probe_bw_{phase}" for phase in ("down", "up", "cruise", "refill"))


@dataclass(frozen=True)
class Moment:
    """The sender after an acknowledgement or a timer."""

    at_s: float
    phase: str
    of: Mapping[str, Any]

    def __getitem__(self, name: str) -> float:
        value = self.of.get(name)
        return math.inf if value is None else float(value)


@dataclass(frozen=True)
class Stay:
    """A stay in a phase: its moments, and the first one of the next phase."""

    phase: str
    moments: list[Moment]
    after: Moment | None

    @property
    def lasted_s(self) -> float:
        """Its duration; up to the last moment if it did not end."""
        return (self.after or self.moments[-1]).at_s - self.moments[0].at_s


class Seen:
    """A run of one sender, and what the case's path is."""

    def __init__(self, run: Run, rate_bps: float, rtt_s: float, acted_s: float | None) -> None:
        self.run = run
        self.rate_bps = rate_bps
        """Of the link at last."""
        self.rtt_s = rtt_s
        self.acted_s = acted_s
        """When the case's action took place, if it waits for a phase."""

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The events of the sender's qlog, packets sent and received left out."""
        records = (self.run.qlog() or b"").split(b"\x1e")[2:]
        mine = (record for record in records if b'"quic:packet_sent"' not in record and b"_received" not in record)
        return [msgspec.json.decode(record) for record in mine]

    @cached_property
    def lost_s(self) -> list[float]:
        """When the sender judged a packet lost."""
        return [event["time"] / 1e3 for event in self.events if event["name"] == "quic:packet_lost"]

    @cached_property
    def stays(self) -> list[Stay]:
        """The phases in order."""
        moments: list[Moment] = []
        phase = ""
        of: dict[str, Any] = {}
        for event in self.events:
            at_s = event["time"] / 1e3
            if event["name"] == "quic:congestion_state_updated":
                phase = event["data"]["new"]
                if moments and moments[-1].at_s == at_s:
                    moments.pop()
            elif event["name"] == "quic:recovery_metrics_updated":
                of = {**of, **event["data"]}
            else:
                continue
            moments.append(Moment(at_s, phase, of))
        found: list[Stay] = []
        for phase, own in groupby(moments, key=lambda moment: moment.phase):
            stay = list(own)
            if found:
                found[-1] = replace(found[-1], after=stay[0])
            found.append(Stay(phase, stay, None))
        return found

    @property
    def moments(self) -> Iterator[Moment]:
        """All moments."""
        return (moment for stay in self.stays for moment in stay.moments)

    def all_of(self, phase: str) -> list[Stay]:
        """The stays in a phase."""
        return [stay for stay in self.stays if stay.phase == phase]

    def ended(self, phase: str, then: str = "") -> list[Stay]:
        """The stays in a phase that ended: in a given other one, or one of PROBE_BW's, ``probe_bw``."""
        return [stay for stay in self.all_of(phase) if stay.after is not None and stay.after.phase.startswith(then)]

    def max_bw(self, moment: Moment) -> float:
        """The bandwidth estimate as a share of the link's rate."""
        return moment["max_bw"] * FRAME / MSS / self.rate_bps

    def share(self, from_s: float, to_s: float = math.inf) -> float:
        """Goodput as a share of what the link's rate allows."""
        series = self.run.flow_series()
        assert series is not None
        time_s, goodput = numbers(series, "time_s"), numbers(series, "goodput_bps")
        within = (time_s >= from_s) & (time_s < to_s)
        if not within.any():
            return math.nan
        return float(goodput[within].mean()) * FRAME / MSS / self.rate_bps

    def lost_within(self, stay: Stay) -> bool:
        """True if the sender judged a packet lost in a stay, or because of its last round trip."""
        end_s = math.inf if stay.after is None else stay.after.at_s
        return any(stay.moments[0].at_s <= at_s <= end_s for at_s in self.lost_s)


# ---- What can be seen from outside ---------------------------------------------------------------------------


def goodput(seen: Seen, at_least: float, from_s: float, to_s: float = math.inf) -> Answer:
    """Goodput of this share of the link between two times."""
    return seen.share(from_s, to_s) >= at_least


def goodput_after(seen: Seen, at_least: float, within_s: float, after_s: float = math.nan) -> Answer:
    """Goodput of this share within some seconds of the action, for half a second."""
    begin = seen.acted_s if math.isnan(after_s) else after_s
    if begin is None:
        return None
    halves = np.arange(begin, begin + within_s - 0.49, 0.1)
    return any(seen.share(at, at + 0.5) >= at_least for at in halves)


def no_stall(seen: Seen, longest_s: float, from_s: float, to_s: float = math.inf) -> Answer:
    """No longer time without any goodput."""
    series = seen.run.flow_series()
    assert series is not None
    time_s, goodput_bps = numbers(series, "time_s"), numbers(series, "goodput_bps")
    busy = time_s[(goodput_bps > 0) & (time_s >= from_s) & (time_s < to_s)]
    return len(busy) > 1 and bool(np.diff(busy).max() <= longest_s)


def loss(seen: Seen, at_most: float, from_s: float) -> Answer:
    """At most this share of the packets lost at the bottleneck from a time on."""
    series = seen.run.queue_series()
    assert series is not None
    rows = (numbers(series, "direction") == 0) & (numbers(series, "time_s") >= from_s)
    dropped, packets = numbers(series, "dropped")[rows], numbers(series, "packets")[rows]
    lost = int(dropped[-1]) - int(dropped[0])
    return bool(lost <= at_most * (lost + int(packets.sum())))


# ---- BBR's state ---------------------------------------------------------------------------------------------


def order(seen: Seen, phases: str) -> Answer:
    """The run begins with these phases."""
    wanted = phases.split()
    found = [stay.phase for stay in seen.stays[: len(wanted)]]
    return [one[: len(two)] for one, two in zip(found, wanted, strict=False)] == wanted


def full_bandwidth(seen: Seen, within: float) -> Answer:
    """max_bw at the end of STARTUP is within this share of the link's rate."""
    return _all(abs(seen.max_bw(_after(stay)) - 1.0) <= within for stay in seen.ended("startup", "drain"))


def full_flags(seen: Seen, count: float | None = None) -> Answer:
    """full_bw_reached, full_bw_now where the version has it, and full_bw_count, when STARTUP ends."""
    ends = [_after(stay) for stay in seen.ended("startup", "drain")]
    return _all(
        end["full_bw_reached"] == 1
        and end.of.get("full_bw_now", 1) == 1
        and (count is None or end["full_bw_count"] == count)
        for end in ends
    )


def not_by_plateau(seen: Seen, phase: str, then: str) -> Answer:
    """A phase ends by losses: the bandwidth's growth had not stood still for three rounds."""
    ends = [stay.moments[-1] for stay in seen.ended(phase, then)]
    return _all(end["full_bw_count"] < 3 for end in ends) if ends else False


def gain(seen: Seen, phase: str, pacing: float = math.nan, cwnd: float = math.nan) -> Answer:
    """The gains in a phase."""
    wanted = {"pacing_gain": pacing, "cwnd_gain": cwnd}
    moments = [moment for stay in seen.all_of(phase) for moment in stay.moments]
    return _all(abs(one[name] - to) < 0.005 for one in moments for name, to in wanted.items() if not math.isnan(to))


def leaves_at_target(seen: Seen, phase: str, then: str, *, headroom: bool = False) -> Answer:
    """A phase ends with the first acknowledgement at which inflight is at most the BDP (and the headroom's bound)."""

    def reached(moment: Moment) -> bool:
        bound = min(moment["inflight_bdp"], moment["inflight_headroom"] if headroom else math.inf)
        return moment["packets_in_flight"] <= bound

    ends = seen.ended(phase, then)
    return _all(reached(_after(stay)) and not any(map(reached, stay.moments[1:])) for stay in ends)


def drain_limit(seen: Seen, rounds: int) -> Answer:
    """DRAIN ends after so many rounds, inflight still above the BDP."""
    stays = seen.all_of("drain")[:1]
    return _all(
        stay.after is not None
        and stay.after["round_count"] - stay.moments[0]["round_count"] == rounds
        and stay.after["packets_in_flight"] > stay.after["inflight_bdp"]
        for stay in stays
    )


def up_by_plateau(seen: Seen) -> Answer:
    """PROBE_UP ends in PROBE_DOWN with full_bw_count = 3, and no packet was lost in it."""
    return _all(_after(one)["full_bw_count"] == 3 and not seen.lost_within(one) for one in seen.ended(UP, DOWN))


def up_by_loss(seen: Seen) -> Answer:
    """Every PROBE_UP that lost packets, and that PROBE_RTT did not end, ends in PROBE_DOWN."""
    ended = [stay for stay in seen.ended(UP) if _after(stay).phase != "probe_rtt"]
    # The acknowledgement that begins PROBE_DOWN may end it too.
    return _all(_after(stay).phase in (DOWN, CRUISE) for stay in ended if seen.lost_within(stay))


def bound_set(seen: Seen) -> Answer:
    """inflight_longterm is set when PROBE_UP has ended by losses."""
    lossy = [stay for stay in seen.ended(UP, DOWN) if seen.lost_within(stay)]
    return _all(math.isfinite(_after(stay)["inflight_longterm"]) for stay in lossy)


def bound_scaled(seen: Seen, beta: float) -> Answer:
    """inflight_longterm after losses in PROBE_UP is at least beta times the target, and at most what was in flight."""
    lossy = [stay for stay in seen.ended(UP, DOWN) if seen.lost_within(stay)]

    def scaled(stay: Stay) -> bool:
        end, bound = stay.moments[-1], _after(stay)["inflight_longterm"]
        target = min(end["inflight_bdp"], end["congestion_window"] / MSS)
        most = max(moment["packets_in_flight"] for moment in stay.moments)
        return math.floor(beta * target) <= bound <= max(most, target)

    return _all(map(scaled, lossy))


def never(seen: Seen, phase: str, then: str, from_s: float = 0.0) -> Answer:
    """No change from one phase to another from a time on; an empty name is any phase."""
    if not seen.stays:
        return None
    return not any(
        (stay.phase == phase or not phase) and stay.after is not None and stay.after.at_s >= from_s
        and (stay.after.phase.startswith(then))
        for stay in seen.stays
    )  # fmt: skip


def refill_follows_down(seen: Seen) -> Answer:
    """The PROBE_DOWN at whose beginning the link became slower ends in PROBE_REFILL when bw_probe_wait is over."""
    stay = next((stay for stay in seen.all_of(DOWN) if stay.moments[0].at_s == seen.acted_s), None)
    if stay is None or stay.after is None or stay.after.phase == "probe_rtt":
        return None
    return stay.after.phase == REFILL and 0 <= stay.lasted_s - stay.moments[-1]["bw_probe_wait"] / 1e3 <= 2 * seen.rtt_s


def probe_rtt_every(seen: Seen, interval_s: float) -> Answer:
    """PROBE_RTT begins this long after the last one ended, and a round trip or two more."""
    stays = seen.ended("probe_rtt")
    gaps = [two.moments[0].at_s - _after(one).at_s for one, two in pairwise(stays)]
    return _all(interval_s <= gap <= interval_s + 4 * seen.rtt_s for gap in gaps)


def probe_rtt_lasts(seen: Seen, at_least_s: float, round_trips: float = math.inf) -> Answer:
    """PROBE_RTT lasts this long, and at most some round trips more."""
    most_s = at_least_s + round_trips * seen.rtt_s
    return _all(at_least_s <= stay.lasted_s <= most_s for stay in seen.ended("probe_rtt"))


def probe_rtt_then(seen: Seen, phase: str) -> Answer:
    """PROBE_RTT ends in a phase."""
    return _all(_after(stay).phase.startswith(phase) for stay in seen.ended("probe_rtt"))


def idle_restart(seen: Seen, at_s: float) -> Answer:
    """idle_restart is true when the application sends again at a time."""
    return any(
        at_s - 0.01 <= moment.at_s <= at_s + seen.rtt_s and moment["idle_restart"] == 1 for moment in seen.moments
    )


def no_probe_rtt(seen: Seen, from_s: float, to_s: float) -> Answer:
    """PROBE_RTT does not begin between two times."""
    return not any(from_s <= stay.moments[0].at_s < to_s for stay in seen.all_of("probe_rtt"))


def window_above(seen: Seen, bdps: float) -> Answer:
    """The window exceeds so many bandwidth-delay products of the path before STARTUP ends or after."""
    bdp = bdps * seen.rate_bps * seen.rtt_s / 8
    return any(moment["congestion_window"] / MSS * FRAME > bdp for moment in seen.moments)


def extra_acked(seen: Seen, at_least: float, after_s: float, rounds: int) -> Answer:
    """extra_acked is at least so many segments, and cwnd includes it, within ten rounds of a time."""
    after = [moment for moment in seen.moments if moment.at_s >= after_s]
    if not after:
        return None
    first = after[0]["round_count"]
    return any(moment["extra_acked"] >= at_least for moment in after if moment["round_count"] <= first + rounds)


def window_floor(seen: Seen, segments: float) -> Answer:
    """The window is never below so many segments, once there is an estimate."""
    return _all(moment["congestion_window"] >= segments * MSS for stay in seen.stays[1:] for moment in stay.moments)


def paces_at(seen: Seen, within: float) -> Answer:
    """The median pacing rate from the second half of the run is within this share of the link's rate."""
    moments = list(seen.moments)
    rates = [moment["pacing_rate"] for moment in moments[len(moments) // 2 :]]
    return bool(abs(np.median(rates) * FRAME / MSS / seen.rate_bps - 1.0) <= within)


def estimate_within(seen: Seen, cycles: int, after_s: float, low: float, high: float = math.inf) -> Answer:
    """max_bw lies between shares of the new rate when so many probing cycles have ended after a change."""
    ends = [stay for stay in seen.all_of(DOWN) if stay.moments[0].at_s > after_s]
    if len(ends) <= cycles:
        return None
    return low <= seen.max_bw(ends[cycles].moments[-1]) <= high


def steepens(seen: Seen, after_s: float) -> Answer:
    """In a PROBE_UP after a time inflight_longterm grows by more in each round than in the one before."""
    for stay in seen.all_of(UP):
        if stay.moments[0].at_s < after_s or not math.isfinite(stay.moments[0]["inflight_longterm"]):
            continue
        bounds = {moment["round_count"]: moment["inflight_longterm"] for moment in stay.moments}
        steps = np.diff(list(bounds.values()))
        grown = steps[steps > 0]
        if len(grown) >= 3:
            return bool((np.diff(grown[:-1]) > 0).all())
    return None


def short_term(seen: Seen, after_s: float, within_s: float) -> Answer:
    """bw_shortterm is set, below the old estimate, within some seconds of a time."""
    return any(
        after_s <= moment.at_s <= after_s + within_s and math.isfinite(moment["bw_shortterm"])
        for moment in seen.moments
    )


def restored(seen: Seen, phase: str = "") -> Answer:
    """Two round trips after a loss that was none, no bound is lower than before, and a given phase was resumed."""
    if not seen.lost_s:
        return None
    episodes = [seen.lost_s[0]] + [two for one, two in pairwise(seen.lost_s) if two - one > 4 * seen.rtt_s]
    moments = list(seen.moments)
    times = np.array([moment.at_s for moment in moments])
    answers = []
    for at_s in episodes:
        before = moments[max(0, int(np.searchsorted(times, at_s)) - 1)]
        later = moments[
            min(len(moments) - 1, int(np.searchsorted(times, at_s + 2 * seen.rtt_s + 1.1 * bool(seen.acted_s))))
        ]
        if phase and before.phase != phase:
            continue
        bounds = ("bw_shortterm", "inflight_shortterm", "inflight_longterm")
        # Resumed by then: it may have come to its own end since.
        again = any(at_s < stay.moments[0].at_s <= later.at_s for stay in seen.all_of(phase))
        resumed = not phase or later.phase == phase or again
        answers.append(all(later[name] >= before[name] for name in bounds) and resumed)
    return _all(answers)


def unchanged_by_refill(seen: Seen) -> Answer:
    """max_bw is the same before and after the PROBE_REFILL in which the application paused, and PROBE_UP follows."""
    stay = next((stay for stay in seen.all_of(REFILL) if stay.moments[0].at_s == seen.acted_s), None)
    if stay is None or stay.after is None:
        return None
    return stay.after.phase == UP and stay.after["max_bw"] == stay.moments[0]["max_bw"]


def _after(stay: Stay) -> Moment:
    assert stay.after is not None
    return stay.after


def _all(answers: Iterator[bool] | list[bool] | Any) -> Answer:
    known = list(answers)
    return all(known) if known else None


OUTSIDE: dict[str, Callable[..., Answer]] = {
    check.__name__: check for check in (goodput, goodput_after, no_stall, loss)
}
"""Criteria that any congestion control can be judged by."""
INSIDE: dict[str, Callable[..., Answer]] = {
    name: check
    for name, check in dict(vars()).items()
    if isfunction(check) and check.__module__ == __name__ and name not in OUTSIDE and not name.startswith("_")
}
"""Criteria of BBR's state: all others of this file."""
