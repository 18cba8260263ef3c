"""How fast real packets go; writes its part of docs/results/real-packets.md.

``python validation/rates.py [--times N]``: iperf3 downloads through ``sojourn shell`` at several rates of the link, and
the lateness of its packets. Needs iperf3, and a machine that has nothing else to do. Exit status: 0 if all was run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pages

import sojourn as sj

RATES = (100, 300, 600, 1000, 1500, 2000, 3000, 4000, 6000)
"""In Mbit/s."""
LONG_S = 5
LINK = 'link = { rate = "100 Mbit/s", delay = "1 ms" }\nqueue = [{ aqm = "fq_codel" }]\n'
MOST_MS = 1.0
"""Of the lateness's 99th percentile."""


def main() -> int:
    """Runs, and replaces the page's table."""
    options = argparse.ArgumentParser(description="Measure how fast real packets go.")
    options.add_argument("--times", type=int, default=5, help="downloads at each rate")
    times: int = options.parse_args().times
    rows, highest, kept = [], 0, True
    for rate in RATES:
        found = [downloaded(rate) for _ in range(times)]
        ours, theirs, middle, late, cpu = (statistics.median(column) for column in zip(*found, strict=True))
        kept = kept and late <= MOST_MS
        highest = rate if kept else highest
        spread = f"{min(one[3] for one in found):.2f} to {max(one[3] for one in found):.2f}"
        lateness = f"{middle:.3f}", f"{late:.2f} ({spread})"
        rows.append((f"{rate}", f"{ours:.0f}", f"{theirs:.0f}", *lateness, f"{cpu:.1f}", f"{simulated(rate):.1f}"))
        print(pages.row(rows[-1]), flush=True)
    told = f"Up to {highest} Mbit/s the median of the 99th percentile is at most {MOST_MS:g} ms at each of these rates."
    pages.put(pages.RESULTS / "real-packets.md", [("Up to", told), ("| link, Mbit/s", rows)])
    return 0


def simulated(rate: int) -> float:
    """The CPU time in µs that the simulator takes for a packet of data of the same download."""
    traffic = f'traffic = [{{ kind = "bulk", rtt = "2 ms" }}]\nexperiment = {{ duration = "{LONG_S} s" }}\n'
    (run,) = sj.run_text(LINK + traffic, set={"link.rate": f"{rate} Mbit/s"}).runs
    return run.summary["wall_s"] * 1e6 / run.summary["bottleneck"]["down"]["delivered_packets"]


def downloaded(rate: int) -> tuple[float, float, float, float, float]:
    """The goodput in Mbit/s as we measure it and as iperf3 does, p50 and p99 of the lateness, and a packet's CPU time.

    That is the time in µs that the path takes for a packet of data, system calls included.
    """
    with tempfile.TemporaryDirectory() as temporary:
        file, out = Path(temporary, "link.toml"), Path(temporary, "out")
        file.write_text(LINK, encoding="utf-8")
        words = [sys.executable, "-m", "sojourn", "shell", file, "--set", f'link.rate="{rate} Mbit/s"', "--out", out]
        words += ["--figures", "none", "--server", "iperf3 -s >/dev/null", "--"]
        words += ["sh", "-c", f"iperf3 -R -J -t {LONG_S} -c $SOJOURN_SERVER"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True)
        theirs = json.loads(done.stdout)["end"]["sum_received"]
        (run,) = json.loads((out / "summary.json").read_text(encoding="utf-8"))["runs"]
        received = max(flow["received_bytes"] for flow in run["flows"] if flow["direction"] == "down")
        late = run["lateness_ms"]
        goodput = received * 8e-6 / theirs["seconds"], theirs["bits_per_second"] / 1e6
        cpu = run["path_cpu_s"] * 1e6 / run["bottleneck"]["down"]["delivered_packets"]
        return *goodput, late["p50"], late["p99"], cpu


if __name__ == "__main__":
    raise SystemExit(main())
