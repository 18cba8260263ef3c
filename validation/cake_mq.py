"""Sends datagrams through the ``cake_mq`` of a built kernel and keeps what left, for cake_queues.py.

``python validation/cake_mq.py [--kernel VERSION]``: boots User-Mode Linux on this machine's own file system, where
``cake_mq_guest.py`` is the only program, once per case. Figures go to ``linux/cake_mq.json``. Needs ``ip`` and ``tc``.
Exit status: 0 if all was measured; 2 if there is no such kernel.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from cake_queues import BESIDE_SEEDS, divided, runs_of, shares

from sojourn.files import whole
from sojourn.linux import machine
from sojourn.linux.kernel import Kernel, built, is_of

HERE = Path(__file__).parent
GUEST = HERE / "cake_mq_guest.py"
KEPT = HERE / "linux" / "cake_mq.json"
RATE_BPS = 100_000_000
SHARES_BPS, SHARES_MS = 60e6, (300, 1300)
"""As in unresponsive.toml: the rate of a flow, the end of the warm-up and of the run."""
LAG_BPS, LAG_MS = 1.5 * RATE_BPS, (500, 2500)
"""As in steps.toml, for a shorter time: a packet takes the guest up to half a millisecond."""
ON_NS, OFF_NS = 10_000_000, 60_000_000
QUEUES = (2, 4, 8)
LAG_SEEDS = 3


def main() -> int:
    """Measures and keeps."""
    options = argparse.ArgumentParser(description="Datagrams through a kernel's cake_mq.")
    options.add_argument("--kernel", default="7.2", help="a built kernel of 7.0 or later")
    asked = options.parse_args()
    found = [kernel for kernel in built() if is_of(kernel.release, asked.kernel)]
    if not found:
        sys.stderr.write(f"--kernel: got {asked.kernel}; is not built: sojourn kernel build {asked.kernel}\n")
        return 2
    kernel = found[0]
    rates, lags = [], []
    for queues in QUEUES:
        for seed in BESIDE_SEEDS:
            (simulated,) = runs_of("unresponsive", 1, {"experiment.seed": seed, "queue.0.queues": queues})
            places = divided(shares(simulated), queues)
            flows: list[dict[str, Any]] = [{"queue": queue, "rate_bps": SHARES_BPS} for queue in places]
            times, numbers = run(kernel, queues, flows, seed, SHARES_MS[1])
            counts = np.bincount(numbers[times >= SHARES_MS[0] * 10**6], minlength=len(places))
            of = [round(count / counts.sum(), 5) for count in counts]
            rates.append({"queues": queues, "seed": seed, "places": places, "shares": of})
    for queues in QUEUES:
        of_seeds = []
        for seed in range(1, LAG_SEEDS + 1):
            draws = random.Random(seed)
            flows = [{"queue": draws.randrange(queues), "rate_bps": LAG_BPS} for _ in range(8)]
            for flow in flows[1:]:
                flow |= {"on_ns": ON_NS, "off_ns": OFF_NS}
            times, _ = run(kernel, queues, flows, seed, LAG_MS[1])
            of_seeds.append(lag(times, 1514))
        lags.append({"queues": queues, "lag": of_seeds})
    kept = {"kernel": kernel.release, "rates": rates, "lags": lags}
    whole.write(KEPT, f"{json.dumps(kept, indent=1)}\n".encode())
    return 0


def lag(times_ns: np.ndarray, size: int) -> list[float]:
    """What leaves in each millisecond, relative to the rate: the mean, and the 1st and 99th percentile."""
    counts = np.bincount((times_ns // 10**6).astype(int))[LAG_MS[0] : LAG_MS[1]]
    rate = counts * size * 8e3 / RATE_BPS
    return [round(float(of), 4) for of in (rate.mean(), np.quantile(rate, 0.01), np.quantile(rate, 0.99))]


def run(
    kernel: Kernel, queues: int, flows: list[dict[str, Any]], seed: int, duration_ms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Times at which packets left, and the flow of each."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        case = folder / "case.json"
        description = {
            "queues": queues,
            "bandwidth_bps": RATE_BPS,
            "flows": flows,
            "seed": seed,
            "duration_ns": duration_ms * 10**6,
        }
        case.write_text(json.dumps(description), encoding="utf-8")
        first = folder / "init"
        first.write_text(
            f"#!/bin/sh\nexport PATH=/usr/sbin:/usr/bin:/sbin:/bin\n{sys.executable} {GUEST} {case}\n"
            "echo o > /proc/sysrq-trigger\nsleep 9\n",
            encoding="utf-8",
        )
        first.chmod(0o755)
        files = ("root=/dev/root", "rootfstype=hostfs", "rw", "hostfs=/", f"init={first}")
        command = machine.user_mode_command(kernel, folder, files)
        said = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=folder)
        left = case.with_suffix(".left")
        if not left.exists():
            raise RuntimeError(f"the guest made nothing: {said.stdout.decode(errors='replace')[-2000:]}")
        content = left.read_bytes()
    (count,) = struct.unpack_from("<q", content)
    times = np.frombuffer(content, np.int64, count, 8)
    return times, np.frombuffer(content, np.int64, count, 8 + 8 * count)


if __name__ == "__main__":
    sys.exit(main())
