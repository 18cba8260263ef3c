"""Measures CAKE on a device with several hardware queues and writes docs/results/cake-queues.md.

``python validation/cake_queues.py [--seeds N]``: how flows share the rate by the number of queues, how much a flow gets
that shares its queue with many, and how far the queues together exceed or miss the rate while flows come and go.
Exit status: 0 if all was run; 2 if the input is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median

import numpy as np

import sojourn as sj

PAGE = Path(__file__).parents[1] / "docs" / "results" / "cake-queues.md"
KERNEL = Path(__file__).parent / "linux" / "cake_mq.json"
"""What a kernel did: cake_mq.py."""
QUEUES = (1, 2, 4, 8)
RATE_BPS = 100e6

BULK = """
[experiment]
name = "bulk flows"
duration = "12 s"
warmup = "4 s"
[link]
rate = "1 Gbit/s"
[[queue]]
aqm = "cake"
variant = "linux"
bandwidth = "100 Mbit/s"
diffserv = "besteffort"
isolation = "flows"
[[traffic]]
name = "bulk"
kind = "bulk"
rtt = "20 ms"
start = "0..1 s"
[[traffic]]
name = "sparse"
kind = "cbr"
rate = "100 kbit/s"
packet = "200 B"
rtt = "20 ms"
"""
"""Bulk flows, and one that sends little."""

STEPS = """
[experiment]
name = "flows that come and go"
duration = "5 s"
warmup = "1 s"
[link]
rate = "1 Gbit/s"
[[queue]]
aqm = "cake"
variant = "linux"
bandwidth = "100 Mbit/s"
diffserv = "besteffort"
isolation = "flows"
[[traffic]]
kind = "cbr"
rate = "150 Mbit/s"
packet = "1472 B"
rtt = "20 ms"
[[traffic]]
kind = "onoff"
flows = 7
rate = "150 Mbit/s"
packet = "1472 B"
on = "10 ms"
off = "60 ms"
times = "exponential"
rtt = "20 ms"
[record]
packets = true
"""
"""One flow always has more to send than the rate, seven others now and then."""


LITTLE = """
[experiment]
name = "queues that send little"
duration = "20 s"
warmup = "5 s"
[link]
rate = "10 Mbit/s"
[[queue]]
aqm = "cake"
bandwidth = "9.5 Mbit/s"
[[traffic]]
kind = "bulk"
rtt = "30 ms"
[[traffic]]
kind = "cbr"
flows = 8
rate = "64 kbit/s"
packet = "160 B"
rtt = "30 ms"
"""
"""One bulk flow, and eight that send little."""

UNRESPONSIVE = """
[experiment]
name = "more than the share from every flow"
duration = "1.3 s"
warmup = "300 ms"
[link]
rate = "10 Gbit/s"
[[queue]]
aqm = "cake"
variant = "linux"
bandwidth = "100 Mbit/s"
diffserv = "besteffort"
isolation = "flows"
[[traffic]]
kind = "cbr"
flows = 8
rate = "60 Mbit/s"
packet = "1472 B"
rtt = "20 ms"
[record]
packets = true
"""
"""The link is so fast that it adds nothing: a virtual device of the kernel takes no time."""
BESIDE_SEEDS = range(1, 4)


def shares(run: sj.Run) -> list[float]:
    """What each flow got of all that arrived."""
    goodputs = [flow["goodput_bps"] for flow in run.summary["flows"]]
    return [goodput / sum(goodputs) for goodput in goodputs]


def divided(of: Sequence[float], queues: int) -> list[int]:
    """The hardware queue of each flow, numbered from the fewest flows, as the shares tell.

    Of ``a`` active queues a flow among ``k`` in its queue has 1 / (a k).
    """
    fits = []
    for active in range(1, queues + 1):
        together = [max(1, round(1 / (active * share))) for share in of]
        if round(sum(1 / number for number in together), 6) == active:
            error = sum(abs(1 / (active * number) - share) for number, share in zip(together, of, strict=True))
            fits.append((error, together))
    if not fits:
        raise ValueError(f"the shares {of} are not those of flows in {queues} queues")
    _, together = min(fits)
    places, queue, room = [0] * len(of), -1, 0
    for flow in sorted(range(len(of)), key=together.__getitem__):
        if room == 0:
            queue, room = queue + 1, together[flow]
        places[flow], room = queue, room - 1
    return places


def main() -> int:
    """Measures and writes."""
    options = argparse.ArgumentParser(description="CAKE with several hardware queues.")
    options.add_argument("--seeds", type=int, default=10, help="runs per case, each with hashes of its own")
    seeds = options.parse_args().seeds
    if seeds < 1:
        sys.stderr.write("--seeds: must be at least 1\n")
        return 2
    PAGE.write_text("\n".join(_page(seeds)) + "\n", encoding="utf-8")
    return 0


def _runs(text: str, seeds: int, **set_: object) -> list[sj.Run]:
    keys: Mapping[str, object] = {
        "experiment.repeat": seeds,
        **{key.replace("__", "."): of for key, of in set_.items()},
    }
    return list(sj.run_text(text, set=keys).runs)


def _page(seeds: int) -> Iterator[str]:
    yield from HEAD.format(seeds=seeds).splitlines()
    for flows in (1, 2, 8, 32, 128):
        for queues in QUEUES:
            runs = _runs(BULK, seeds, queue__0__queues=queues, traffic__0__flows=flows)
            yield _row(flows, queues, runs)
    yield from LAG.splitlines()
    for sync in ("200 us", "1 ms", "10 ms"):
        for queues in QUEUES[1:] if sync != "200 us" else QUEUES:
            more = {"queue__0__sync_time": sync} if queues > 1 else {}
            yield _lag(queues, sync if queues > 1 else "–", _runs(STEPS, seeds, queue__0__queues=queues, **more))
    yield from USED.splitlines()
    for queues, sync in ((1, "–"), (4, "200 us"), (4, "10 ms")):
        more = {"queue__0__sync_time": sync} if queues > 1 else {}
        yield _used(queues, sync, _runs(LITTLE, seeds, queue__0__queues=queues, **more))
    yield from _beside()
    yield ""
    yield f"Measured on {datetime.now(UTC):%Y-%m-%d} by `python validation/cake_queues.py --seeds {seeds}`."


def _row(flows: int, queues: int, runs: list[sj.Run]) -> str:
    bulk = [[flow["goodput_bps"] for flow in run.summary["flows"] if flow["kind"] == "bulk"] for run in runs]
    total = mean(sum(of) for of in bulk)
    least = [min(of) * flows / sum(of) for of in bulk]
    most = [max(of) * flows / sum(of) for of in bulk]
    jain = [sum(of) ** 2 / (len(of) * sum(value * value for value in of)) for of in bulk]
    sparse = [run.summary["groups"][1]["one_way_ms"]["p99"] for run in runs]
    cells = [
        f"{flows}",
        f"{queues}",
        f"{total / 1e6:.1f}",
        f"{median(jain):.2f}",
        f"{median(least):.2f} ({min(least):.2f})",
        f"{median(most):.2f} ({max(most):.2f})",
        f"{median(sparse):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def _beside() -> Iterator[str]:
    """Beside the kernel: the same division of flows, then flows that come and go."""
    kernel = json.loads(KERNEL.read_text(encoding="utf-8"))
    yield from BESIDE.format(release=kernel["kernel"]).splitlines()
    for case in kernel["rates"]:
        ours = shares(_runs(UNRESPONSIVE, 1, experiment__seed=case["seed"], queue__0__queues=case["queues"])[0])
        if divided(ours, case["queues"]) != case["places"]:
            raise ValueError("the flows are divided otherwise now: python validation/cake_mq.py")
        theirs = case["shares"]
        furthest = max(abs(here - there) / there for here, there in zip(ours, theirs, strict=True))
        numbers = sorted(case["places"].count(queue) for queue in set(case["places"]))
        cells = [str(case["queues"]), ", ".join(map(str, numbers)), _ends(theirs), _ends(ours), f"{furthest:.1%}"]
        yield f"| {' | '.join(cells)} |"
    yield from BESIDE_LAG.splitlines()
    for case in kernel["lags"]:
        runs = _runs(STEPS, len(case["lag"]), queue__0__queues=case["queues"], link__rate="10 Gbit/s")
        ours = _lag(case["queues"], "simulator", runs)
        theirs = [case["lag"][number] for number in range(len(case["lag"]))]
        means, under, over = zip(*theirs, strict=True)
        yield f"| {case['queues']} | Linux | {mean(means):.3f} | {median(under):.2f} | {median(over):.2f} |"
        yield ours


def _ends(of: Sequence[float]) -> str:
    return f"{min(of):.4f} to {max(of):.4f}"


def _used(queues: int, sync: str, runs: list[sj.Run]) -> str:
    shares = [run.summary["bottleneck"]["down"]["utilization"] * 10 / 9.5 for run in runs]
    return f"| {queues} | {sync} | {median(shares):.1%} | {min(shares):.1%} | {max(shares):.1%} |"


def _lag(queues: int, sync: str, runs: list[sj.Run]) -> str:
    over, under, total = [], [], []
    for run in runs:
        packets = run.packets()
        if packets is None:
            raise AssertionError("packets are recorded")
        columns = {name: packets.column(name).to_numpy() for name in ("direction", "fate", "time_ns", "bytes")}
        is_sent = (columns["direction"] == 0) & (columns["fate"] == 0)
        left = columns["time_ns"][is_sent] // 1_000_000
        windows = np.bincount(left.astype(int), weights=columns["bytes"][is_sent])[1000:5000]
        rate = windows * 8e3 / RATE_BPS
        over.append(float(np.quantile(rate, 0.99)))
        under.append(float(np.quantile(rate, 0.01)))
        total.append(float(rate.mean()))
    return f"| {queues} | {sync} | {mean(total):.3f} | {median(under):.2f} | {median(over):.2f} |"


HEAD = """\
# CAKE with several hardware queues

Linux's `cake_mq` (since 7.0) runs one CAKE per hardware queue of a device, and divides the rate among the active ones
([cake](../disciplines/cake.md#several-hardware-queues)). Here a link of 1 Gbit/s is shaped to 100 Mbit/s, and CUBIC
flows with an RTT of 20 ms share it, besides one flow of 100 kbit/s. Each of {seeds} seeds has other hashes. Shares are
relative to the fair share: the median over the seeds of the least and of the largest, and in brackets the extreme of
all seeds.

These numbers are the simulator's; [below](#beside-the-kernel) it is beside the kernel. Each single queue is the CAKE
whose decisions [are those of a recorded kernel](../disciplines/cake.md#known-deviations).

- One flow has the whole rate, whatever the number of queues.
- Where flows are about as many as queues, the hash decides: of eight flows over eight queues the least has 0.67 of the
  fair share on the median of the seeds, and 0.5 in the worst; the largest has 1.33, and 2.
- With 32 flows over eight queues the least has 0.61 of the fair share on the median of the seeds, and 0.37 in the
  worst; the largest has 2.00, and 3.96 where it is alone in its queue. With 128 flows the queues have more equal
  numbers: 0.69 and 0.61, 1.46 and 2.04.
- The sparse flow waits for about a millisecond: its packets pass the bulk flows of their queue, but wait for the
  queue's shaper, which is slower by the number of active queues.

| flows | queues | goodput, Mbit/s | Jain's index | least share | largest share | p99 of the sparse flow, one way, ms |
| --: | --: | --: | --: | --: | --: | --: |"""
LAG = """
## How long the rate lags

One flow sends 150 Mbit/s all the time, and seven others 150 Mbit/s for 10 ms in 70 on the mean. What leaves in each
millisecond, relative to the rate: the mean, and the 1st and the 99th percentile. A queue that becomes active counts for
another when that one sends next, `sync_time` after its last count or later; until then both together exceed the rate.
At this load, which always fills the link, no rate is lost and none is gained on the mean with Linux's 200 us; single
milliseconds, of eight packets at this rate, have two packets less or more. With 10 ms up to 0.6 % is not used.

| queues | sync_time | mean | 1 % | 99 % |
| --: | --- | --: | --: | --: |"""

USED = """
## How much of the rate is used where queues send little

At 9.5 Mbit/s one bulk flow beside eight that send 64 kbit/s each. A queue that has sent one small packet since
another's last count is active for it, as one that always sends, and most of its share is not used. The part of the rate
that is used, median and extremes over the seeds:

| queues | sync_time | median | least | most |
| --: | --- | --: | --: | --: |"""
BESIDE = """
## Beside the kernel

`cake_mq` of Linux {release}, built as User-Mode Linux, is the root of a virtual device with so many transmit queues:
eight flows of 60 Mbit/s each, whose queues are those that the simulator's hash gave to them. What each gets of all:

| queues | flows in them | Linux, least and largest | simulator | furthest |
| --: | --- | --- | --- | --: |"""
BESIDE_LAG = """
Flows that come and go, as above, on a device that takes no time, and what leaves in each millisecond. The extremes of
two and four queues are a packet further from the mean in the simulator; the cause is not known. Queues that send little
were not compared.

| queues | | mean | 1 % | 99 % |
| --: | --- | --: | --: | --: |"""


if __name__ == "__main__":
    sys.exit(main())
