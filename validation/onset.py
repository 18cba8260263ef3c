"""When things began in a measurement of Linux, read off its queue: its record does not say.

The series of a measurement holds the mean delay in bins of 100 ms from the first packet on; ``from_linux.py`` describes
the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from comparison import Departures

import sojourn as sj

BIN_S = 0.1
CONTROL_MS = 2.5
"""Queue delay that iperf3's control connection and ping never cause; what exceeds it is the flows' data."""
STEEP_MS = 10.0
"""Growth of the delay from one bin to the next that only a new rate or a new constant flow causes."""
ALIGNED_BINS = 4
"""What a start is aligned by: the first round trips of data, before losses and with them chance have a part in it."""
STEP_S = 0.002
EXCHANGES = 5
"""Round trips of iperf3's control connection before datagrams begin, and before TCP flows that begin as ours do.

The first of them is ARP's; data follow a round trip later.
"""
FAIR = ("fq_codel", "fq_pie", "sfq", "cake")
"""Disciplines that let a control connection pass the queues of others."""
DATAGRAMS_LATER_S = 0.005
"""How much longer iperf3 itself takes for datagrams, as measured with one flow of each."""


def begins_s(measured: dict[str, Any], one: dict[str, Any]) -> float:
    """When a group of hosts begins, in seconds after the first packet at the bottleneck; TCP's to a bin.

    iperf3's control connections, which all start together, take several round trips before their flows connect, a
    round trip before their data. With groups of different RTT the series shows only the first of them.
    """
    scenario = measured["scenario"]
    partner = begins_with(scenario, one)
    if partner:
        # The steep growth is of both then.
        exchanges_s = EXCHANGES * (float(one["rtt_ms"]) - float(partner["rtt_ms"])) / 1000
        return begins_s(measured, partner) + exchanges_s + DATAGRAMS_LATER_S
    if one.get("kind", "tcp") == "udp":
        at_s, delay_ms = jump(measured, one.get("start", 0))
        # Seen when the first of them left the queue.
        return at_s - delay_ms / 1000
    rtt_s = float(one["rtt_ms"]) / 1000
    first_s = max(0.0, first_data(measured) * BIN_S - tcp_rtts_s(scenario)[0])
    return first_s if rtt_s == tcp_rtts_s(scenario)[0] else connects_s(measured, first_s, rtt_s)


def connects_s(measured: dict[str, Any], first_s: float, rtt_s: float) -> float:
    """When flows of an RTT connect, if those of the least connect at ``first_s``.

    All packets of their control connection but the first wait in the queue.
    """
    scenario, series = measured["scenario"], measured["series_100ms_mean_ms"]
    at_s = first_s - EXCHANGES * tcp_rtts_s(scenario)[0] + rtt_s
    for _ in range(EXCHANGES - 1):
        waits = scenario["aqm"].split()[0] not in FAIR and at_s > 0
        at_s += rtt_s + (series[int(at_s / BIN_S)] or 0.0 if waits else 0.0) / 1000
    return at_s


def begins_with(scenario: dict[str, Any], one: dict[str, Any]) -> dict[str, Any] | None:
    """The group of TCP flows that iperf3 was started for at the same time as for this one of datagrams."""
    if one.get("kind", "tcp") != "udp":
        return None
    tcp = (other for other in scenario["groups"] if other.get("kind", "tcp") == "tcp")
    return next((other for other in tcp if other.get("start", 0) == one.get("start", 0)), None)


def shift_s(measured: dict[str, Any], experiment: Callable[[dict[str, Any], float], str]) -> float:
    """How much later than ``begins_s`` TCP began, and datagrams that begin with it.

    The shift with which our first data are nearest to Linux's: those of the least RTT, until others' may come.
    ``experiment`` makes the file of a measurement with a shift.
    """
    scenario = measured["scenario"]
    first = first_data(measured)
    least_s, *others_s = tcp_rtts_s(scenario)
    aligned = min([ALIGNED_BINS, *(int((EXCHANGES + 1) * (rtt_s - least_s) / BIN_S) for rtt_s in others_s)])
    bins = slice(max(0, first - 1), first + aligned)
    theirs = np.array([delay_ms or 0.0 for delay_ms in measured["series_100ms_mean_ms"]])[bins]
    beginning = {
        **scenario,
        "duration": math.ceil((first + aligned) * BIN_S),
        "warmup": 0,
        "rate_steps": [],
        "groups": [one for one in scenario["groups"] if is_first(scenario, one)],
    }

    def distance_ms(shift: float) -> float:
        text = experiment({**measured, "scenario": beginning}, shift)
        results = sj.run_text(text, set={"experiment.repeat": 1, "record.packets": True})
        ours = Departures.of(results.runs[0]).means_ms(first + aligned, BIN_S)[bins]
        return float(np.abs(np.nan_to_num(ours) - theirs).mean())

    # Data that come at the end of a bin may show in the next one only.
    shifts = np.arange(-BIN_S / 2, BIN_S + STEP_S, STEP_S)
    return float(min(shifts, key=distance_ms))


def first_data(measured: dict[str, Any]) -> int:
    """The first bin in which data queued."""
    series = measured["series_100ms_mean_ms"]
    return next(number for number, delay_ms in enumerate(series) if delay_ms is not None and delay_ms > CONTROL_MS)


def tcp_rtts_s(scenario: dict[str, Any]) -> list[float]:
    """The base RTTs of the TCP flows in seconds, the least first."""
    return sorted({float(one["rtt_ms"]) / 1000 for one in scenario["groups"] if one.get("kind", "tcp") == "tcp"})


def is_first(scenario: dict[str, Any], one: dict[str, Any]) -> bool:
    """Whether a group has a part in the first data: TCP of the least RTT, datagrams that begin with it, ping."""
    if one.get("kind", "tcp") == "tcp":
        return float(one["rtt_ms"]) / 1000 == tcp_rtts_s(scenario)[0]
    return one["kind"] != "udp" or begins_with(scenario, one) is not None


def jump(measured: dict[str, Any], nominal_s: float) -> tuple[float, float]:
    """When the queue began to grow steeply near an instant, and the delay in ms before: (nominal_s, 0) if it did not.

    What a measurement does after so many seconds happens by another clock than that of its packets, up to a second
    apart. A queue that grows steadily from a fraction u of a bin before the bin's end on has a mean of u²/2 of a
    bin's growth in that bin and of u + 1/2 in the next; their ratio gives u.
    """
    series = [delay_ms or 0.0 for delay_ms in measured["series_100ms_mean_ms"]]
    first = max(1, round((nominal_s - 1) / BIN_S))
    for number in range(first, min(first + round(2.5 / BIN_S), len(series) - 1)):
        before, now, after = series[number - 1 : number + 2]
        if now - before > STEEP_MS:
            ratio = (now - before) / max(after - before, now - before)
            return (number + 1 - ratio - math.sqrt(ratio * ratio + ratio)) * BIN_S, before
    return nominal_s, 0.0
