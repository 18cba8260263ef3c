"""Measures CAKE on a device with several hardware queues and writes docs/results/cake-queues.md.

``python validation/cake_queues.py [--seeds N]``: how flows share the rate by the number of queues, how much a flow gets
that shares its queue with many, and how far the queues together exceed or miss the rate while flows come and go.
Exit status: 0 if all was run; 2 if the input is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import pages

import sojourn as sj

PAGE = pages.RESULTS / "cake-queues.md"
FILES = Path(__file__).with_name("cake_queues")
KERNEL = Path(__file__).parent / "linux" / "cake_mq.json"
"""What a kernel did: cake_mq.py."""
QUEUES = (1, 2, 4, 8)
RATE_BPS = 100e6

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
    kernel = json.loads(KERNEL.read_text(encoding="utf-8"))
    words = {r"Each of (\d+) seeds": seeds, r"`cake_mq` of Linux ([\d.]+),": kernel["kernel"]}
    pages.put(PAGE, _parts(seeds, kernel), words)
    return 0


def runs_of(name: str, seeds: int, keys: Mapping[str, object]) -> list[sj.Run]:
    """Runs of one of the files of ``cake_queues/``."""
    return list(sj.run(FILES / f"{name}.toml", set={"experiment.repeat": seeds, **keys}).runs)


def _parts(seeds: int, kernel: Mapping[str, Any]) -> Iterator[pages.Part]:
    """What the page has of it."""
    yield (
        "| flows | queues",
        [
            _row(flows, queues, runs_of("bulk", seeds, {"queue.0.queues": queues, "traffic.0.flows": flows}))
            for flows in (1, 2, 8, 32, 128)
            for queues in QUEUES
        ],
    )
    synced = [(queues, "200 us") for queues in QUEUES]
    synced += [(queues, sync) for sync in ("1 ms", "10 ms") for queues in QUEUES[1:]]
    yield "| queues | sync_time | mean", [_of_sync(_lag, "steps", seeds, *one) for one in synced]
    little = ((1, ""), (4, "200 us"), (4, "10 ms"))
    yield "| queues | sync_time | median", [_of_sync(_used, "little", seeds, *one) for one in little]
    yield "| queues | flows in them", _rates(kernel)
    yield "| queues | | mean", _lags(kernel)
    yield (
        "Measured on",
        f"Measured on {datetime.now(UTC):%Y-%m-%d} by `python validation/cake_queues.py --seeds {seeds}`.",
    )


def _of_sync(
    cells: Callable[[int, str, list[sj.Run]], list[str]], name: str, seeds: int, queues: int, sync: str
) -> list[str]:
    """A row for so many queues; of one there is nothing to synchronize."""
    more = {"queue.0.sync_time": sync} if queues > 1 else {}
    return cells(queues, sync if queues > 1 else "–", runs_of(name, seeds, {"queue.0.queues": queues, **more}))


def _row(flows: int, queues: int, runs: list[sj.Run]) -> list[str]:
    bulk = [[flow["goodput_bps"] for flow in run.summary["flows"] if flow["kind"] == "bulk"] for run in runs]
    total = mean(sum(of) for of in bulk)
    least = [min(of) * flows / sum(of) for of in bulk]
    most = [max(of) * flows / sum(of) for of in bulk]
    jain = [sum(of) ** 2 / (len(of) * sum(value * value for value in of)) for of in bulk]
    sparse = [run.summary["groups"][1]["one_way_ms"]["p99"] for run in runs]
    return [
        f"{flows}",
        f"{queues}",
        f"{total / 1e6:.1f}",
        f"{median(jain):.2f}",
        f"{median(least):.2f} ({min(least):.2f})",
        f"{median(most):.2f} ({max(most):.2f})",
        f"{median(sparse):.2f}",
    ]


def _rates(kernel: Mapping[str, Any]) -> Iterator[list[str]]:
    """The same division of flows as the kernel's."""
    for case in kernel["rates"]:
        ours = shares(
            runs_of("unresponsive", 1, {"experiment.seed": case["seed"], "queue.0.queues": case["queues"]})[0]
        )
        if divided(ours, case["queues"]) != case["places"]:
            raise ValueError("the flows are divided otherwise now: python validation/cake_mq.py")
        theirs = case["shares"]
        furthest = max(abs(here - there) / there for here, there in zip(ours, theirs, strict=True))
        numbers = sorted(case["places"].count(queue) for queue in set(case["places"]))
        yield [str(case["queues"]), ", ".join(map(str, numbers)), _ends(theirs), _ends(ours), f"{furthest:.1%}"]


def _lags(kernel: Mapping[str, Any]) -> Iterator[list[str]]:
    """Flows that come and go, as the kernel had them."""
    for case in kernel["lags"]:
        runs = runs_of("steps", len(case["lag"]), {"queue.0.queues": case["queues"], "link.rate": "10 Gbit/s"})
        yield _lag_cells(case["queues"], "Linux", case["lag"])
        yield _lag(case["queues"], "simulator", runs)


def _ends(of: Sequence[float]) -> str:
    return f"{min(of):.4f} to {max(of):.4f}"


def _used(queues: int, sync: str, runs: list[sj.Run]) -> list[str]:
    shares = [run.summary["bottleneck"]["down"]["utilization"] * 10 / 9.5 for run in runs]
    return [f"{queues}", sync, f"{median(shares):.1%}", f"{min(shares):.1%}", f"{max(shares):.1%}"]


def _lag(queues: int, sync: str, runs: list[sj.Run]) -> list[str]:
    found = []
    for run in runs:
        packets = run.packets()
        if packets is None:
            raise AssertionError("packets are recorded")
        columns = {name: packets.column(name).to_numpy() for name in ("direction", "fate", "time_ns", "bytes")}
        is_sent = (columns["direction"] == 0) & (columns["fate"] == 0)
        left = columns["time_ns"][is_sent] // 1_000_000
        windows = np.bincount(left.astype(int), weights=columns["bytes"][is_sent])[1000:5000]
        rate = windows * 8e3 / RATE_BPS
        found.append((float(rate.mean()), float(np.quantile(rate, 0.01)), float(np.quantile(rate, 0.99))))
    return _lag_cells(queues, sync, found)


def _lag_cells(queues: int, of: str, found: Sequence[Sequence[float]]) -> list[str]:
    total, under, over = zip(*found, strict=True)
    return [f"{queues}", of, f"{mean(total):.3f}", f"{median(under):.2f}", f"{median(over):.2f}"]


if __name__ == "__main__":
    sys.exit(main())
