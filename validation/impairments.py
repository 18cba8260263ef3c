"""Impairments of the simulator beside netem of a built kernel; writes docs/results/impairments.md.

``python validation/impairments.py VERSION`` sends datagrams over a link with each impairment, in the simulator and on
the kernel that ``sojourn kernel build VERSION`` made. Exit status: 0 if all was run.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pages

import sojourn as sj
from sojourn.linux import Linux

SEEDS = 5
CASES = {
    "nothing": "",
    "loss of 1 %": "loss = 0.01",
    "bursts of losses": "loss = { enter = 0.01, leave = 0.25, bad = 0.5 }",
    "damage of 2 %": "corrupt = 0.02",
    "normal jitter": 'jitter = "2 ms"',
    "uniform jitter": 'jitter = { mean = "5 ms", spread = "4 ms", shape = "uniform" }',
    "Pareto's jitter": 'jitter = { mean = "5 ms", spread = "2 ms", shape = "pareto" }',
    "overtaking": 'reorder = { share = 0.05, by = "20 ms" }',
}
FILE = """
experiment = {{ duration = "60 s", repeat = {seeds} }}
link = {{ rate = "10 Mbit/s", delay = "20 ms", {keys} }}
queue = [{{ aqm = "pfifo" }}]
traffic = [{{ kind = "cbr", rate = "1 Mbit/s", packet = "500 B", rtt = "40 ms", jitter = "0 s" }}]
"""
PERCENTILES = ("p5", "p50", "p95", "p99")


def main() -> int:
    """Runs and writes."""
    options = argparse.ArgumentParser(description="Compare impairments with a kernel's netem.")
    options.add_argument("kernel", metavar="VERSION", help="as for sojourn run --kernel")
    kernel: str = options.parse_args().kernel
    rows = []
    folder = Path(tempfile.mkdtemp())
    for name, keys in CASES.items():
        file = folder / "impaired.toml"
        file.write_text(FILE.format(seeds=SEEDS, keys=keys), encoding="utf-8")
        for where, results in {
            "simulator": sj.run(file),
            f"netem of Linux {kernel}": sj.run(file, backend=Linux(kernel=kernel)),
        }.items():
            rows.append([name, where, *figures(results)])
            print(pages.row(rows[-1]), flush=True)
    words = {r"impairments\.py (\S+)`": kernel, r"(\d+) seeds; means": SEEDS}
    pages.put(pages.RESULTS / "impairments.md", [("| impairment", rows)], words)
    return 0


def figures(results: sj.Results) -> list[str]:
    """Losses at the link and at the receiver, and percentiles of the one-way delay; means over the seeds."""
    runs = [run.summary for run in results.runs]
    assert not any(run.get("invalid") for run in runs), [run.get("invalid") for run in runs]
    sent = np.array([run["flows"][0]["sent_bytes"] / 500 for run in runs])
    wire = np.array([run["bottleneck"]["down"].get("lost_packets") or 0 for run in runs])
    missing = np.array([run["flows"][0]["lost_packets"] for run in runs])
    delays = [np.array([run["flows"][0]["one_way_ms"][name] for run in runs]) for name in PERCENTILES]
    return [
        *(with_scatter(100.0 * lost / sent, 2) for lost in (wire, missing)),
        *(with_scatter(one, 2) for one in delays),
    ]


def with_scatter(values: np.ndarray, digits: int) -> str:
    """The mean and the standard error of it."""
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) / np.sqrt(len(values)):.{digits}f}"


if __name__ == "__main__":
    raise SystemExit(main())
