"""Options that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from sojourn import _core, linux
from sojourn._core import ExperimentError
from sojourn.cli.outcome import complain
from sojourn.cli.parameters import flag, folder, is_text, option
from sojourn.figure.filenames import DEFAULT_FORMATS, FORMATS, WIDTHS_IN
from sojourn.files import extras
from sojourn.runs.backends import BACKENDS, backend_of
from sojourn.runs.backends import Backend as AnyBackend
from sojourn.store import Store

BY_DEFAULT = ",".join(DEFAULT_FORMATS) if extras.is_installed("matplotlib") else "none"


LISTS = {"aqm": _core.disciplines_json, "tcp": _core.congestion_controls_json, "traffic": _core.traffic_json}


def listed(what: str) -> list[dict[str, Any]]:
    """The disciplines, congestion controls or models of traffic, each with its name."""
    entries: list[dict[str, Any]] = json.loads(LISTS[what]())
    return entries


def names_of(what: str) -> list[str]:
    """The names of what is ``listed``."""
    return [entry["name"] for entry in listed(what)]


def formats_of(given: str) -> tuple[str, ...]:
    """The value of --figures. Raises ExperimentError if a format is unknown."""
    named = tuple(dict.fromkeys(part.strip() for part in given.split(",")))
    if named == ("none",):
        return ()
    if any(part not in FORMATS for part in named):
        raise ExperimentError(f'--figures: got "{given}"; must be none or some of {", ".join(FORMATS)}, with commas')
    if not extras.is_installed("matplotlib"):
        raise ExperimentError(f"--figures: {extras.needed('matplotlib')}")
    return named


Out = Annotated[Path | None, folder("Write summary.json, recorded tables and plots to this directory.")]
Figures = Annotated[
    str, option("Formats of the figures that --out saves: png, svg, pdf, several with commas, or none.", "FORMATS")
]
Width = Annotated[str | None, option("Width of figures in a paper: column or page.", "WIDTH", among=WIDTHS_IN)]
Jobs = Annotated[int | None, option("Parallel runs; default: one per processor.", min=1)]
StoreFolder = Annotated[Path, folder("The store: a folder of runs.")]
Trust = Annotated[bool, flag("Run the store's Python files even if other users may write to the folder.", "--trust")]
_KEPT = "Keep the runs in this store, a folder that is created if missing. Runs that it has are not repeated."
KeptRuns = Annotated[Path | None, folder(_KEPT)]
Executor = Annotated[
    str,
    option("Execute runs in threads or processes. Disciplines in Python run in parallel only in processes.", "NAME"),
]
Json = Annotated[bool, flag("Print JSON to standard output, and nothing else.", "--json")]
Resume = Annotated[bool, flag("Continue an interrupted or killed run of the same experiment into --out.", "--resume")]
DryRun = Annotated[bool, flag("Only show the number of runs, their time, memory and disk space.", "--dry-run")]
Baseline = Annotated[
    str | None,
    option(
        "Also show the differences from this queue, or from this swept value (VALUE or KEY=VALUE), seed by seed.",
        "NAME",
    ),
]
Until = Annotated[
    str | None,
    option(
        "Repeat until half the width of the 95 % interval of the metric's mean is at most this share of the mean: "
        "--until goodput_bps=2%. The file's repeat is then the maximum.",
        "METRIC=SHARE",
    ),
]
Backend = Annotated[str, option("Where to run it: sim, linux, or datapath (real packets).", among=BACKENDS)]
On = Annotated[
    str | None,
    option(
        "For linux: vm (default; virtual time, no root), host (real time), or a testbed's file, lab.toml.",
        "PLACE",
        among=("vm", "host"),
    ),
]
_KERNEL = (
    "For linux. VERSION or DIR: a kernel made by 'sojourn kernel build'. 'emulated': the default kernel of the "
    "emulated machine. DIR with boot/ and lib/modules/, or IMAGE:MODULES: that kernel in the emulated machine."
)
Kernel = Annotated[str | None, option(_KERNEL, "KERNEL")]
Kernels = Annotated[list[str] | None, option(f"{_KERNEL} Repeated: these kernels beside each other.", "KERNEL")]
Set = Annotated[list[str] | None, option('Replace a value, by dotted key: --set queue.0.target="10 ms".', "KEY=VALUE")]


def overrides(assignments: list[str] | None) -> list[tuple[str, str]]:
    """Splits ``KEY=VALUE`` strings into pairs. Raises ExperimentError if a string has no key or no equals sign."""
    pairs = []
    for assignment in assignments or []:
        key, equals, value = assignment.partition("=")
        if not is_text(assignment):
            raise ExperimentError(f"--set: got {assignment!r}; must be UTF-8")
        if not (key.strip() and equals):
            raise ExperimentError(f'--set: got "{assignment}"; must be KEY=VALUE, like queue.0.target="10 ms"')
        pairs.append((key.strip(), value.strip()))
    return pairs


def on_linux(on: str | None, kernel: str | None = None) -> linux.Linux:
    """The Linux backend for these options. Raises ExperimentError if ``on`` is unknown, or does not accept a kernel."""
    backend_of("linux")  # Refuses a system that is not Linux.
    if on in (None, "vm"):
        return linux.Linux(kernel=kernel)
    if kernel is not None:
        raise ExperimentError(f'--kernel: got "{kernel}"; --on {on} uses the running kernel: omit --kernel or --on')
    return linux.Linux(on="host" if on == "host" else lab(on))


def lab(on: str | None) -> linux.Lab:
    """The testbed of this file. Raises ExperimentError if it is none; the message says what must be changed."""
    if on is None or not on.endswith(".toml"):
        raise ExperimentError(f'--on: got "{on}"; must be vm, host, or the file of a testbed, like lab.toml')
    return linux.Lab.read(Path(on))


def kept_runs(folder: Path | None) -> Store | None:
    """The store in a folder, created if missing; None if no folder is given."""
    return None if folder is None else Store.make(folder, say=complain)


def chosen(backend: str, on: str | None, kernel: str | None) -> AnyBackend:
    """The backend for these options. Raises ExperimentError if the backend is unknown, or does not accept an option."""
    if backend == "linux":
        return on_linux(on, kernel)
    for name, value in (("--on", on), ("--kernel", kernel)):
        if value is not None:
            raise ExperimentError(f'{name}: got "{value}"; needs --backend linux')
    return backend_of(backend)
