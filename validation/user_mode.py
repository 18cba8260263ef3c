"""Built kernels beside the emulated machine and the simulator; writes docs/results/user-mode.md.

``python validation/user_mode.py VERSION …`` runs the files of ``user_mode/`` on the kernels that ``sojourn kernel build
VERSION`` made and in the simulator, and the first of them in the emulated machine too. Exit status: 0 if all was run.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pages

import sojourn as sj
from sojourn import _core
from sojourn.linux import Linux
from sojourn.runs.backends import Backend, backend_of
from sojourn.runs.execution import as_run

HERE = Path(__file__).parent / "user_mode"
FILES = ("usual", "many_flows", "fast", "gigabit")


def main() -> int:
    """Runs and writes."""
    options = argparse.ArgumentParser(description="Compare built kernels with the emulated machine and the simulator.")
    options.add_argument("kernels", nargs="+", metavar="VERSION", help="as for sojourn run --kernel")
    given = options.parse_args()
    rows = [row for name in FILES for row in rows_of(name, given.kernels)]
    words = {
        r"user_mode\.py ([\w. ]+)`": " ".join(given.kernels),
        r"the load was (\d+) on": f"{os.getloadavg()[1]:.0f}",
        r"on (\d+) processors": os.cpu_count(),
    }
    pages.put(pages.RESULTS / "user-mode.md", [("| experiment", rows)], words)
    return 0


def rows_of(name: str, kernels: list[str]) -> Iterator[list[str]]:
    """The rows of an experiment."""
    (spec,) = sj.plan(HERE / f"{name}.toml")
    backends: dict[str, Backend] = {"simulator": backend_of("sim")}
    backends |= {f"built {kernel}": Linux(kernel=kernel) for kernel in kernels}
    if name == FILES[0]:
        backends["emulated machine"] = Linux(kernel="emulated")
    for title, backend in backends.items():
        began_s, before = time.monotonic(), processor_s()
        summary = as_run(backend.run(spec, _core.Monitor())).summary
        took_s = processor_s() - before
        queue = summary["bottleneck"]["down"]
        goodput = sum(flow["goodput_bps"] for flow in summary["flows"]) / 1e6
        trust = "no: " + "; ".join(summary["invalid"]) if "invalid" in summary else "yes"
        figures = [
            f"[{name}](../../validation/user_mode/{name}.toml)",
            f"{title}, {summary['kernel']}" if "kernel" in summary else title,
            *(f"{queue['sojourn_ms'][at]:.2f}" for at in ("p50", "p95")),
            str(queue["dropped_aqm"] + queue["dropped_overflow"]),
            f"{goodput:.2f}",
            trust,
            f"{took_s:.1f}",
            f"{time.monotonic() - began_s:.1f}",
        ]
        print(figures, flush=True)
        yield figures


def processor_s() -> float:
    """Processor time of this process and of those that it started and has waited for."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    raise SystemExit(main())
