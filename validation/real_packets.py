"""The same files on the simulator, a built kernel and real packets; writes docs/results/real-packets.md.

``python validation/real_packets.py VERSION`` runs ``real_packets/*.toml`` in the simulator, on the kernel that
``sojourn kernel build VERSION`` made where it supports the file, and with the kernel's TCP on Sojourn's own links in
real time, which takes about ten minutes of a machine that has nothing else to do. Exit status: 0 if all was run.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import pages

import sojourn as sj
from sojourn.frame.metrics import METRICS
from sojourn.linux import Datapath, Linux
from sojourn.studies.agreement import backends as agreement
from sojourn.studies.tolerances import TOLERANCES

HERE = Path(__file__).parent
TRIES = 4
"""A file is run again if a processor was busy with something else, so that a run is invalid."""
COLUMNS = ("sojourn_p50_ms", "sojourn_p95_ms", "goodput_bps", "dropped_packets", "marked_packets", "jain_goodput")


def main() -> int:
    """Runs, and replaces the page's table."""
    options = argparse.ArgumentParser(description="Compare real packets with the simulator and a built kernel.")
    options.add_argument("kernel", metavar="VERSION", help="as for sojourn run --kernel")
    options.add_argument("files", nargs="*", help="parts of the names of those to run; default: all, and the page")
    given = options.parse_args()
    files = [file for file in sorted((HERE / "real_packets").glob("*.toml")) if _is_wanted(file, given.files)]
    linux = Linux(kernel=given.kernel)
    rows = [row for file in files for row in compared(file, linux)]
    if not given.files:
        pages.put(pages.RESULTS / "real-packets.md", [("All medians", told(rows)), ("| file |", rows)])
    return 0


def _is_wanted(file: Path, parts: list[str]) -> bool:
    return not parts or any(part in file.stem for part in parts)


def compared(file: Path, linux: Linux) -> list[list[str]]:
    """The rows of a file: the simulator, then the others, with * where the median is beyond the tolerance."""
    like = linux.followed
    named = {"simulator": sj.run(file, set=like)}
    try:
        named[f"Linux {linux.release}"] = sj.run(file, set=like, backend=linux)
    except sj.ExperimentError as error:
        print(error, flush=True)
    for _ in range(TRIES):
        named["real packets"] = sj.run(file, set=like, backend=Datapath())
        if not any(run.summary.get("invalid") for run in named["real packets"].runs):
            break
    reference = named["simulator"]
    rows = []
    for name, results in named.items():
        found = {(row.direction, row.metric): row for row in agreement.compare(reference, results)}
        for queue in reference.queues:
            cells = [cell(found.get((queue, key))) for key in COLUMNS]
            rows.append([file.stem, queue, name, *cells, lateness(results) if name == "real packets" else ""])
            print(pages.row(rows[-1]), flush=True)
    return rows


def cell(row: agreement.Agreement | None) -> str:
    """A median, with * if it is beyond the tolerance."""
    if row is None:
        return ""
    metric = next(metric for metric in METRICS if metric.name == row.metric)
    star = "" if TOLERANCES[row.metric].within(row.first, row.second) else " *"
    return f"{row.second / metric.declared.per:.{metric.declared.digits}f}{star}"


def lateness(results: sj.Results) -> str:
    """The 99th percentile in ms, the median of the runs; and how many are invalid."""
    runs = [run.summary for run in results.runs]
    late = statistics.median(run["lateness_ms"]["p99"] for run in runs)
    invalid = sum(bool(run.get("invalid")) for run in runs)
    return f"{late:.2f}" + (f" ({invalid} of {len(runs)} invalid)" if invalid else "")


def told(rows: list[list[str]]) -> str:
    """How many files agree."""
    beyond = {(row[0], row[2]) for row in rows for cell in row[3:-1] if cell.endswith("*")}
    count = {name: len([row for row in beyond if row[1] == name]) for name in {row[2] for row in rows}}
    ran = {name: len({row[0] for row in rows if row[2] == name}) for name in count}
    files = "; ".join(
        f"{name}: {ran[name] - count[name]} of {ran[name]} files" for name in sorted(count) if name != "simulator"
    )
    return f"All medians within the tolerances: {files}."


if __name__ == "__main__":
    raise SystemExit(main())
