"""``sojourn advise``: what a router at home should do with its line."""

from __future__ import annotations

import io
import shlex
import sys
from pathlib import Path
from typing import Annotated

from rich.console import Group
from rich.table import Table

from sojourn import _core
from sojourn.cli.options import Jobs
from sojourn.cli.outcome import INTERRUPTED, Stopped
from sojourn.cli.output import new, show, write
from sojourn.cli.parameters import option
from sojourn.cli.progress import Display
from sojourn.files import extras
from sojourn.frame.statistics import Interval, fixed
from sojourn.frame.swept import rate_bps, time_s
from sojourn.lines import formats, household, typed
from sojourn.lines.advice import INDICATORS, Advice, advise
from sojourn.page.sheet import listing

_ACTIVITIES = ", ".join(household.ACTIVITIES).replace("meeting", "meeting (a video call)")


def command(
    line: Annotated[str, option(f"One of {', '.join(household.LINES)}.", "KIND")],
    doing: Annotated[str, option(f"At the same time: {_ACTIVITIES}.", "WHAT,…")] = "calls,game,download,upload",
    down: Annotated[str | None, option("Rate of the line: 300mbit.", "RATE")] = None,
    up: Annotated[str | None, option("Rate of the line upward: 20mbit.", "RATE")] = None,
    modem_buffer: Annotated[str, option("How long packets wait in the full queue of the modem.", "TIME")] = "250 ms",
    rtt: Annotated[str, option("Base RTT to servers.", "TIME")] = "30 ms",
    trace: Annotated[Path | None, option("A recording of the line that sojourn link import reads.", "FILE")] = None,
    trace_up: Annotated[Path | None, option("The other direction, for traces of mahimahi.", "FILE")] = None,
    out: Annotated[
        Path | None, option("Keep the experiment, and a picture as FILE.png.", "FILE.toml", "-o", "--out")
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Recommend a setting for a router at home, with what is gained for each activity."""
    if out is not None and out.suffix != ".toml":
        raise _core.ExperimentError(f'--out: got "{out}"; must end with .toml')
    if out is not None and not extras.is_installed("matplotlib"):
        raise _core.ExperimentError(f"--out: {extras.needed('matplotlib')}")
    if out is not None:
        new(out, out, out.with_suffix(".png"))
    if trace_up is not None and trace is None:
        raise _core.ExperimentError("--trace-up: needs --trace, the direction down")
    folder = None if out is None else out.parent
    of = household.home(
        line,
        down_bps=None if down is None else rate_bps("--down", down),
        up_bps=None if up is None else rate_bps("--up", up),
        doing=[one.strip() for one in doing.split(",") if one.strip()],
        buffer_ms=1e3 * time_s("--modem-buffer", modem_buffer),
        rtt_ms=1e3 * time_s("--rtt", rtt),
        recorded=None if trace is None else formats.read(trace, up=trace_up, beside=folder),
        folder=folder,
    )
    typed_in = f"sojourn {shlex.join(sys.argv[1:])}"
    try:
        with Display(keeps=False) as display:
            found = advise(
                of,
                file=out or Path("advice.toml"),
                command=typed_in if typed_in.isprintable() else "",
                jobs=jobs,
                report=display,
            )
    except KeyboardInterrupt:
        raise Stopped(INTERRUPTED, "interrupted; nothing is kept") from None
    print(recommendation(found))
    show(Group(gains(found), every(found)))
    print(where_from(found))
    if out is not None:
        picture = io.BytesIO()
        found.picture().savefig(picture, format="png")
        write(out, found.experiment.encode())
        write(out.with_suffix(".png"), picture.getvalue())
        print(f"The runs again: sojourn run {out}; the picture: {out.with_suffix('.png')}")


def recommendation(found: Advice) -> str:
    """The recommendation, and what to type."""
    if not found.helps:
        tried = len(found.tried) - 1
        return f"{found.home.title}\n\nNothing helps: leave it as it is. None of {tried} settings is clearly better.\n"
    rates = "mean rates" if found.home.recorded else "rates"
    lines = [found.home.title, "", f"Recommended: {found.chosen.label} of the line's {rates}. On the router, as root"]
    lines += [f"({typed.DEVICE} is its port to the modem):", ""]
    lines += [f"  {line}" for line in typed.tc(found.home.line, found.chosen)]
    lines += ["", "or on OpenWrt with sqm-scripts, in /etc/config/sqm:", ""]
    lines += [f"  {line}".expandtabs(4) for line in typed.sqm(found.home.line, found.chosen)]
    if "PPPoE" in found.home.line.words:
        lines += ["", "If the router itself logs in by PPPoE, its port to the modem is ppp0, on OpenWrt pppoe-wan."]
    return "\n".join([*lines, ""])


def gains(found: Advice) -> Table:
    """As it is and as recommended, a row per activity and indicator."""
    headings = ("", "", "as it is", *([found.chosen.label, "difference"] if found.helps else []))
    rows: list[list[str]] = []
    activity = ""
    for gain in found.gains():
        indicator, digits = gain.indicator, gain.indicator.digits
        named = "" if gain.activity == activity else gain.activity
        activity = gain.activity
        rows.append([named, f"{indicator.words} [{indicator.unit}]", _text(gain.before, digits)])
        if found.helps:
            difference = _text(gain.difference, digits, sign="+") + (" *" if gain.difference.is_clear else "")
            rows[-1] += [_text(gain.after, digits), difference]
    return listing(headings, rows, title="What it changes" if found.helps else "As it is", right=(2, 3, 4))


def every(found: Advice) -> Table:
    """All settings with their costs."""
    doing = found.home.doing
    rows = []
    for setting in found.tried:
        gains = found.gains(setting)
        first = [next(gain for gain in gains if gain.activity == activity) for activity in doing]
        cells = [fixed(gain.after.middle, gain.indicator.digits) for gain in first]
        rows.append([setting.label, *cells, fixed(found.cost(setting), 0)])
    headings = ["", *(f"{activity} [{INDICATORS[activity][0].unit}]" for activity in doing), "cost"]
    return listing(headings, rows, title="All settings: the median of what decides", right=range(1, len(headings)))


def where_from(found: Advice) -> str:
    """What the numbers are."""
    settings, runs, lead_s = len(found.tried), len(found.results.runs), found.home.lead_s
    ahead = f"The meeting begins {lead_s:g} s before the rest, for its rate to grow.\n" if lead_s else ""
    duration_s = lead_s + found.home.together_s
    return (
        f"{runs} simulated runs of {duration_s:g} s: {settings} settings, {runs // settings} seeds.\n{ahead}"
        "Numbers are medians with 95 % intervals; differences are seed by seed, * if the interval excludes\n"
        "zero. Delay is that of the line's queues, in the direction where it is worse; the\n"
        f"modem's queue holds {found.home.buffer_ms:g} ms in each direction. Cost: a point per ms of p99 delay of\n"
        "calls, meetings and games, ten per percent of their packets lost, and one per percent of\n"
        "goodput, media rate or load time behind the best setting; the median of the seeds' sums.\n"
        "Recommended is the first within two points of the least."
    )


def _text(one: Interval, digits: int, sign: str = "") -> str:
    if one.n == 0:
        return "–"
    low, middle, high = (f"{value + 0.0:{sign}.{digits}f}" for value in (one.low, one.middle, one.high))
    return middle if low == high else f"{middle} ({low} to {high})"
