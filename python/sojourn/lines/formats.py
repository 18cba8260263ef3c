"""Recordings of links in the formats of other programs.

| format | source |
| --- | --- |
| Flent's data files | Flent's documentation, "The data file format", versions 1 to 4 |
| mahimahi's traces | mm-link(1), and the README of mahimahi's traces |
| CellReplay's traces | Sentosa et al., NSDI 2025, section 4, and the README of williamsentosa95/cellreplay |
| cake-autorate's logs | cake-autorate, ``print_headers`` of version 3 and its ANALYSIS.md |
| speed tests | ``speedtest-cli --csv-header``; Ookla's ``speedtest -f csv --output-header``; librespeed-cli's manual |
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

from sojourn._core import ExperimentError
from sojourn.files import bounded
from sojourn.lines.course import Course, Steps, merged

LARGEST = 200 * bounded.MEGABYTE  # the largest recording, uncompressed
ON_THE_LINK = 1514 / 1448  # bytes on the link per byte of payload in full segments of TCP
BIN_S = 1.0  # width of the bins of a log
HOLD_S = 10.0  # how long each of several speed tests lasts in the course, unless the user says otherwise
FASTEST_BPS = 1e12

ACCEPTED = (
    "a result of Flent, a trace of mahimahi or CellReplay, a log of cake-autorate (output_processing_stats=1), or CSV "
    "of speedtest-cli, Ookla's speedtest or librespeed-cli with its header"
)


def read(
    file: Path, *, up: Path | None = None, delay: Path | None = None, hold_s: float = HOLD_S, beside: Path | None = None
) -> Course:
    """The course of the link in a recording; a trace of mahimahi or CellReplay is of the direction down.

    ``up`` is the trace of the other direction, ``delay`` CellReplay's delay trace (``…-delay-light-pdo``), ``hold_s``
    how long each of several speed tests lasts. ``beside`` is the folder of the experiment file, to which the paths of
    traces are relative, by default the working directory. Raises ExperimentError if the file cannot be read, is damaged
    or of no known format.
    """
    text = text_of(file)
    if not text.strip():
        raise ExperimentError(f"{file}: is empty; must be {ACCEPTED}")
    first = text.lstrip().split("\n", 1)[0].strip()
    if first.isascii() and first.isdigit():
        return _traces(file, text, up, delay, beside or Path())
    for option, path in (("--up", up), ("--delay", delay)):
        if path is not None:
            raise ExperimentError(f"{option}: goes with a trace of mahimahi or CellReplay, which {file} is not")
    if first.startswith("{"):
        return _flent(file, text)
    if re.match(r"(DATA|LOAD|DEBUG|INFO|SYSLOG|REFLECTOR|SUMMARY|CPU|SHAPER|ERROR)(_\w+)?; ", first):
        return _autorate(file, text)
    names = {name.strip().strip('"').lower() for name in first.split(",")}
    if {"download", "upload"} <= names:
        return _speed_tests(file, text, hold_s)
    if _train(first) is not None:
        raise ExperimentError(
            f"{file}: is CellReplay's delay trace; must be given as --delay, beside the heavy trace (…-pdo) as FILE"
        )
    raise ExperimentError(f'{file}:1: got "{first[:40]}"; must be {ACCEPTED}')


def text_of(file: Path) -> str:
    """The text of a recording, which may be compressed; errors as for ``read``."""
    content = bounded.unzipped(bounded.read_given(file, LARGEST), file, LARGEST)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{file}: not UTF-8 text (byte {error.start}); must be {ACCEPTED}") from None


def _traces(file: Path, text: str, up: Path | None, delay: Path | None, beside: Path) -> Course:
    """Traces of mahimahi. The reader of experiments checks their lines."""
    last = text.split()[-1]
    delays = () if delay is None else _delays(delay, text_of(delay))
    kind = "a trace of mahimahi" if delay is None else "traces of CellReplay"
    seconds = float(last) / 1000 if last.isdigit() else 0.0
    other = () if up is None else os.path.relpath(up, beside)
    return Course(f"{kind}, {file.name}", seconds, os.path.relpath(file, beside), other, delays)


def _train(line: str) -> tuple[float, float] | None:
    """A line of CellReplay's delay trace: its time and one-way delay in ms, and when packets of a train arrived."""
    fields = line.split()
    if len(fields) < 3 or not all(re.fullmatch(r"\d{1,12}", field) for field in fields):
        return None
    return float(fields[0]), float(fields[1])


def _delays(file: Path, text: str) -> Steps:
    found: list[tuple[float, float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        train = _train(line)
        if train is None or (found and train[0] / 1000 <= found[-1][0]):
            must = "must be a later time, a one-way delay and arrivals of a train, all in whole ms: 200 23 0 0 1"
            raise ExperimentError(f'{file}:{number}: got "{line[:40]}"; {must}')
        found.append((train[0] / 1000, train[1]))
    return merged(found)


def _flent(file: Path, text: str) -> Course:
    """The sum of TCP's goodput in each direction, as bytes on the link, and half the least ping."""
    try:
        document = json.loads(text)
        times, results = document["x_values"], document["results"]
        series = {str(name): list(values) for name, values in results.items()}
        if not all(isinstance(at, int | float) and math.isfinite(at) for at in times) or not times:
            raise ValueError
        if any(len(values) != len(times) for values in series.values()) or sorted(times) != times:
            raise ValueError
    except json.JSONDecodeError as error:
        problem = f"not JSON from line {error.lineno}, column {error.colno} on"
        raise ExperimentError(f"{file}: damaged result of Flent: {problem}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise ExperimentError(
            f"{file}: damaged result of Flent: must have rising x_values, and results with as many values each"
        ) from None

    def of(way: str) -> Steps:
        own = re.compile(rf"TCP {way}( [A-Z0-9]{{2,4}})?( ?\d+)?(::\d+)?")
        flows = [values for name, values in series.items() if own.fullmatch(name)]
        flows = flows or [values for name, values in series.items() if name == f"TCP {way} sum"]
        sums = [(at, sum(_number(values[index]) for values in flows)) for index, at in enumerate(times)]
        # Flows start later than the pings, and samples are missing at the ends: the rate before holds.
        return merged([(at, mbps * 1e6 * ON_THE_LINK) for at, mbps in sums if mbps > 0])

    down, up = of("download"), of("upload")
    if not down and not up:
        raise ExperimentError(f"{file}: has no goodput of TCP; must be of a test with downloads or uploads, like rrul")
    pings = [_number(one) for name, values in series.items() if name.startswith("Ping (ms)") for one in values]
    least = min(filter(None, pings), default=0.0)
    title = f"a result of Flent, {file.name}: what TCP achieved, the least that the link carried"
    if not down:
        title, down, up = f"{title}; uploads only, here as down", up, ()
    return Course(title, times[-1] - times[0], down, up, [(0.0, least / 2)] if least else ())


def _number(value: Any) -> float:
    good = isinstance(value, int | float) and math.isfinite(value) and 0 <= value < FASTEST_BPS / 1e6
    return float(value) if good else 0.0


def _autorate(file: Path, text: str) -> Course:
    """The rates at which cake-autorate shaped, and half its baseline of the round trip, medians per second."""
    lines = [(number, line.split("; ")) for number, line in enumerate(text.splitlines(), start=1)]
    kinds = {fields[0] for _, fields in lines}
    kind = next((kind for kind in ("DATA", "LOAD") if {kind, f"{kind}_HEADER"} <= kinds), "")
    if not kind:
        raise ExperimentError(
            f"{file}: has no DATA or LOAD lines with their header; must be a log with output_processing_stats=1"
        )
    *_, header = (fields for _, fields in lines if fields[0] == f"{kind}_HEADER")
    columns = [name.strip() for name in header]
    rows = [(number, dict(zip(columns, fields, strict=False))) for number, fields in lines if fields[0] == kind]
    names = ("PROC_TIME_US", "CAKE_DL_RATE_KBPS", "CAKE_UL_RATE_KBPS")
    baselines = [name for name in ("DL_OWD_BASELINE", "UL_OWD_BASELINE") if name in columns]
    if missing := [name for name in names if name not in columns]:
        raise ExperimentError(f"{file}: its {kind} lines have no {missing[0]}; must be a log of cake-autorate 2 or 3")
    bins: dict[int, list[list[float]]] = {}
    begin = math.nan
    last = 0
    for number, row in rows:
        try:
            at_us, *rates = (float(row[name]) for name in names)
            delay_us = sum(float(row[name]) for name in baselines)
            begin = at_us if math.isnan(begin) else begin
            index = int((at_us - begin) / 1e6 / BIN_S)
            if index < last or not all(0 < rate * 1e3 < FASTEST_BPS for rate in rates):
                raise ValueError
        except (KeyError, OverflowError, ValueError):
            if number == rows[-1][0] and bins:
                break  # A log that was copied while it was written ends within a line.
            raise ExperimentError(
                f"{file}:{number}: damaged {kind} line; must have later times and rates above 0 in {', '.join(names)}"
            ) from None
        last = index
        bins.setdefault(index, []).append([rates[0] * 1e3, rates[1] * 1e3, delay_us / 2000])
    medians = [[(index * BIN_S, median(of)) for of in zip(*own, strict=True)] for index, own in sorted(bins.items())]
    down_, up_, delay = map(merged, zip(*medians, strict=True))
    known = kind == "DATA" and all(value > 0 for _, value in delay)
    seconds = (last + 1) * BIN_S
    source = f"a log of cake-autorate, {file.name}: the rates that it shaped to"
    return Course(source, seconds, down_, up_, _rounded(delay) if known else ())


def _rounded(delay: Iterable[tuple[float, float]]) -> Steps:
    return merged([(at, round(value, 1)) for at, value in delay])


def _speed_tests(file: Path, text: str, hold_s: float) -> Course:
    """A rate per test, and half the ping."""
    reader = csv.DictReader(io.StringIO(text))
    names = {(name or "").strip().lower(): name for name in reader.fieldnames or ()}
    ookla = "download bytes" in names
    per = 8.0 if ookla else 1.0 if "sponsor" in names else 1e6
    program = "Ookla's speedtest" if ookla else "speedtest-cli" if "sponsor" in names else "librespeed-cli"
    ping = next((names[name] for name in ("idle latency", "latency", "ping") if name in names), None)
    tests: list[tuple[float, float, float]] = []
    failed = 0
    try:
        for row in reader:
            if None in row or None in row.values():
                raise ExperimentError(
                    f"{file}:{reader.line_num}: damaged line; must have {len(names)} fields, as the first has"
                )
            down, up = (float(row[names[name]]) * per for name in ("download", "upload"))
            delay = float(row[ping]) / 2 if ping is not None and row[ping] else 0.0
            if not (0 <= down < FASTEST_BPS and 0 <= up < FASTEST_BPS and 0 <= delay < 1e5):
                raise ValueError
            if down and up:
                tests.append((down, up, delay))
            else:
                failed += 1  # It has zeros.
    except ExperimentError:
        raise
    except (TypeError, ValueError, csv.Error):
        unit = {8.0: "bytes/s", 1.0: "bit/s"}.get(per, "Mbit/s")
        must = f"must have download and upload in {unit}, from 0 to below 1 Tbit/s, and ping in ms"
        raise ExperimentError(f"{file}:{reader.line_num}: damaged line; {must}") from None
    if not tests:
        raise ExperimentError(f"{file}: has no test with a download and an upload")
    down_, up_, delay_ = (
        merged([(index * hold_s, test[column]) for index, test in enumerate(tests)]) for column in range(3)
    )
    count = f"{len(tests)} tests of {hold_s:g} s each" if len(tests) > 1 else "one test"
    count += f"; without {failed} of {failed + len(tests)}, which failed" if failed else ""
    delays = _rounded(delay_) if all(delay for _, delay in delay_) else ()
    return Course(f"{program}, {file.name}: {count}", len(tests) * hold_s, down_, up_, delays)
