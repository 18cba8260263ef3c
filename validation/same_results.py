"""Whether a change of the code changes results: records what a checkout computes, and compares two such records.

``python validation/same_results.py record DIR`` runs the scenarios of validation and benches and every study
(``--quick``), and writes each run's summary. ``… compare BEFORE AFTER`` names every value that differs. Exit status of
``compare``: 0 if no value that stood in BEFORE has changed, 1 otherwise. Wall times are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sojourn as sj
from sojourn.studies import available, run_study

ROOT = Path(__file__).parents[1]
SHOWN = 20
"""Differences that are printed in full."""


def main() -> int:
    """Records or compares."""
    parser = argparse.ArgumentParser(description="Does a change of the code change results?")
    commands = parser.add_subparsers(required=True, dest="command")
    recording = commands.add_parser("record", help="run everything and write the summaries")
    recording.add_argument("directory", type=Path)
    comparing = commands.add_parser("compare", help="name every value that differs between two records")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.before, given.after)
    record(given.directory)
    return 0


def record(directory: Path) -> None:
    """Writes a file per experiment: a list of its runs' summaries."""
    directory.mkdir(parents=True, exist_ok=True)
    for folder in ("validation/linux", "benches/scenarios"):
        for file in sorted((ROOT / folder).glob("*.toml")):
            write(directory / f"{Path(folder).parts[0]}-{file.stem}.json", sj.run(file).runs)
    for study in available():
        write(directory / f"study-{study.name}.json", run_study(study, quick=True).runs)


def write(path: Path, runs: Iterable[sj.Run]) -> None:
    """Writes the summaries of runs, without wall times."""
    summaries = [{key: value for key, value in run.summary.items() if key != "wall_s"} for run in runs]
    path.write_text(json.dumps(summaries, indent=0, sort_keys=True), encoding="utf-8")
    print(f"{path.name}: {len(summaries)} runs", flush=True)


def compare(before: Path, after: Path) -> int:
    """Prints what differs; returns the exit status."""
    changed, new, files = 0, Counter[str](), Counter[str]()
    for old in sorted(before.glob("*.json")):
        fresh = after / old.name
        if not fresh.exists():
            print(f"{old.name}: missing in {after}")
            changed += 1
            continue
        pair = [json.loads(path.read_text(encoding="utf-8")) for path in (old, fresh)]
        for path, was, now in differences(*pair):
            if was is ABSENT:
                new[".".join(part for part in path.split(".") if not part.isdigit())] += 1
                continue
            changed += 1
            files[old.name] += 1
            if changed <= SHOWN:
                print(f"{old.name}: {path}: {was} -> {now}")
    for key, count in sorted(new.items()):
        print(f"new: {key} ({count} times)")
    for name, count in files.items():
        print(f"{name}: {count} values differ")
    print(f"{changed} values differ")
    return 1 if changed else 0


ABSENT = "absent"


def differences(was: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place at which two documents differ, with what stands there in each."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in sorted(was.keys() | now.keys()):
            yield from differences(was.get(key, ABSENT), now.get(key, ABSENT), f"{path}.{key}" if path else key)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from differences(one, other, f"{path}.{index}" if path else str(index))
    elif was != now:
        yield path, was, now


if __name__ == "__main__":
    sys.exit(main())
