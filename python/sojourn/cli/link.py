"""``sojourn link``: links from recordings and files of other programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli.outcome import FAILED, Stopped
from sojourn.cli.output import new, write
from sojourn.cli.parameters import argument, option
from sojourn.frame.swept import time_s
from sojourn.lines import course, formats, tree

app = typer.Typer(help="Links from recordings and files of other programs.", no_args_is_help=True, add_completion=False)


app.callback()(lambda: None)  # Keeps ``import`` a command of its own while it is the only one.


@app.command("import")
def import_(
    file: Annotated[
        Path,
        argument(
            "A result of Flent, trace of mahimahi or CellReplay, log of cake-autorate, CSV of a speed test, or "
            "ShapedDevices.csv of LibreQoS.",
            "FILE",
        ),
    ],
    up: Annotated[Path | None, option("The other direction's trace.", "FILE")] = None,
    delay: Annotated[Path | None, option("CellReplay's delay trace: …-delay-light-pdo.", "FILE")] = None,
    hold: Annotated[str, option("How long each of several speed tests lasts.", "TIME")] = f"{formats.HOLD_S:g} s",
    duration: Annotated[str | None, option("Of the run; default: the recording's, 10 to 60 s.", "TIME")] = None,
    network: Annotated[
        Path | None, option("LibreQoS' network.json; default: the one beside FILE, if any.", "FILE")
    ] = None,
    out: Annotated[
        Path | None, option("The experiment file to write; default: print it.", "FILE", "-o", "--out")
    ] = None,
) -> None:
    """Make an experiment of a recorded link, its rates and delay over time, or of an operator's tree of subscribers."""
    if out is not None:
        new(out, out)
    hold_s = time_s("--hold", hold)
    duration_s = None if duration is None else time_s("--duration", duration)
    if (subscribers := tree.read(file, network)) is not None:
        text = tree.experiment(subscribers, file.name, duration_s)
    else:
        found = formats.read(file, up=up, delay=delay, hold_s=hold_s, beside=None if out is None else out.parent)
        text = course.experiment(found, duration_s)
    # What the reader of experiments refuses, such as a damaged trace, is not written.
    if out is not None and not out.parent.is_dir():
        raise Stopped(FAILED, f"{out}: cannot be written: {out.parent} is no folder")
    name = str(out or "experiment.toml")
    try:
        _core.Plan.read_text(text, name, [])
    except _core.ExperimentError as error:
        raise _core.ExperimentError(_of_the_recording(str(error), name, [file, *filter(None, [up])])) from None
    if out is None:
        print(text, end="")
        return
    write(out, text.encode())
    print(out)


def _of_the_recording(message: str, name: str, given: Sequence[Path]) -> str:
    """What the reader of experiments says of the one called ``name``, as a fault of what was ``given`` for it."""
    beside = Path(name).parent
    for trace in given:
        _, found, rest = message.partition(f"; {beside / os.path.relpath(trace, beside)}:")
        if found:
            return f"{trace}:{rest}"
    key, _, what = message.partition(": ")
    return f"{given[0]}: its experiment would be refused: {what if key.startswith(name) else message}"
