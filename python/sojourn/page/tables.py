"""Results as a table for people."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from sojourn.frame.groups import above_capacity, links_of, shown_groups
from sojourn.frame.metrics import (
    Metric,
    has_queue,
    inner_metrics,
    inner_queues,
    left_out,
    of_queues,
    overview_metrics,
    queue_at,
    stations,
)
from sojourn.frame.registry import Declared, declared
from sojourn.frame.results import Arm, Results, Run
from sojourn.frame.statistics import Interval, fixed, interval_note, median_interval

EXPENDABLE = (
    "sojourn_mean_ms",
    "marked_packets",
    "jain_goodput",
    "dropped_packets",
    "lost_packets",
    "utilization",
    "sojourn_p50_ms",
)
"""The columns to omit on a narrow terminal, in this order; the queue and swept keys are never omitted."""
EXPENDABLE_OF_GROUPS = (
    "jain_goodput",
    "one_way_p95_ms",
    "video_stalled_ms",
    "page_load_n",
    "completion_n",
    "page_load_p95_ms",
    "completion_p95_ms",
    "lost_packets",
    "rtt_p50_ms",
    "completion_p50_ms",
    "video_rate_bps",
    "rtt_p95_ms",
)
"""The same for the table of groups."""
PLAIN_WIDTH = 160
"""The columns of a table in a file."""


@dataclass(frozen=True)
class Sheet:
    """A table before it is drawn: text only, with a line break between a number and its interval."""

    title: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int
    """The number of text columns, from the left; the others are numbers."""

    def without(self, headings: Collection[str], caption: str) -> Sheet:
        """The sheet without some columns, with another caption."""
        kept = [column for column, heading in enumerate(self.headings) if heading not in headings]
        rows = tuple(tuple(row[column] for column in kept) for row in self.rows)
        return replace(self, caption=caption, headings=tuple(self.headings[column] for column in kept), rows=rows)


def results_sheet(results: Results, metrics: Sequence[Metric] | None = None) -> Sheet:
    """One row per arm and queue of the network: medians over the repeats, confidence intervals below."""
    shown = shown_metrics(results) if metrics is None else metrics
    if results.has_several_links:
        # Goodput belongs to the flows, not to a link.
        shown = [metric for metric in shown if metric.name != "goodput_bps"]
    summary = results.summary
    swept = swept_keys(results)
    queues = results.queues
    title = f"{summary['experiment']} ({summary['backend']})"
    if results.partial:
        title += f", stopped early: {len(results.runs)} of {summary['planned_runs']} runs"
    links = links_of(results)
    rows = [
        (
            _discipline(links, arm, queue),
            *(str(arm.set.get(key, "")) for key in swept),
            *([queue] if len(queues) > 1 else []),
            *(_cell(metric, arm, queue) for metric in shown),
        )
        for arm in results.arms
        for queue in queues
        if has_queue(arm.runs[0].summary, queue)
    ]
    words = ("queue", *swept, *([queue_heading(results)] if len(queues) > 1 else []))
    return Sheet(
        title,
        _caption(shown, repeats_of(results)) + _without_chance(results) + above_capacity(results),
        (*words, *(metric.declared.heading for metric in shown)),
        tuple(rows),
        len(words),
    )


def _discipline(links: Mapping[str, Sequence[Mapping[str, Any]]], arm: Arm, queue: str) -> str:
    """The discipline of a queue: the arm, or the link's own, which it has in every arm."""
    name, _, way = queue.rpartition("/")
    for link in links.get(json.dumps(arm.set), ()):
        up = link.get("up", {}) if way == "up" else {}
        if name in ("", link.get("name")) and (own := up.get("queue") or link.get("queue")):
            return f"{own['label']} (with {arm.label})"
    return arm.label


def queue_heading(results: Results) -> str:
    """The heading of the column that identifies the queues of a network."""
    return "link" if results.has_several_links else "way"


def shown_metrics(results: Results) -> list[Metric]:
    """The columns of the results table.

    Fairness is included only if all TCP flows are alike; otherwise the table of groups has it, for each group and for
    all TCP flows together.
    """
    mixed = any(map(_is_mixed, results.runs[:1]))
    return [metric for metric in of_queues(results) if not (mixed and metric.name == "jain_goodput")]


def _tcp_groups(run: Run) -> list[Mapping[str, Any]]:
    """The groups of TCP flows: those of datagrams and echo requests count what they lose."""
    return [group for group in shown_groups(run.summary) if "lost_packets" not in group]


def _is_mixed(run: Run) -> bool:
    """Whether there are several groups of TCP flows."""
    return len(_tcp_groups(run)) > 1


def _all_tcp(arm: Arm, metrics: Sequence[Declared]) -> list[str]:
    """The row of all TCP flows together: goodput, and fairness if they share a direction."""
    of_runs = [_tcp_groups(run) for run in arm.runs]
    shared = len({group["direction"] for group in of_runs[0]}) == 1
    jains = [run.summary["jain_goodput"] if shared else None for run in arm.runs]
    values = {
        "goodput_bps": [math.fsum(group["goodput_bps"] for group in groups) for groups in of_runs],
        "jain_goodput": [math.nan if jain is None else jain for jain in jains],
    }
    flows = sum(group["flows"] for group in of_runs[0])
    cells = [_text(metric, values[metric.name]) if metric.name in values else "–" for metric in metrics]
    return [f"all TCP ×{flows}", *cells]


def _caption(metrics: Sequence[Metric], repeats: tuple[int, int]) -> str:
    """The meaning of the numbers in the present columns."""
    names = {metric.name for metric in metrics}
    times = [short for short in ("p50", "p95", "mean") if f"sojourn_{short}_ms" in names]
    words = {"dropped_packets": "drops", "marked_packets": "marks", "lost_packets": "lost"}
    counts = [word for name, word in words.items() if name in names]
    counted = " and ".join(filter(None, [", ".join(counts[:-1]), *counts[-1:]]))
    parts = [
        f"{', '.join(times)}: sojourn time" if times else "",
        f"{counted} count the whole run" if counts else "",
        interval_note(*repeats),
    ]
    return "; ".join(filter(None, parts))


def _without_chance(results: Results) -> str:
    """A note on arms whose repeats are all equal: their narrow intervals do not mean certainty."""
    same = [
        arm.label
        for arm in results.arms
        if len(arm.runs) > 1
        and all(run.summary[part] == arm.runs[0].summary[part] for run in arm.runs for part in ("bottleneck", "flows"))
    ]
    if not same:
        return ""
    names = ", ".join(dict.fromkeys(same))
    whose = "all repeats of a row" if len(same) == len(results.arms) else f"the repeats of {names}"
    return f'; {whose} are equal, because nothing in them is random: give flows a start such as "0..1 s"'


def groups_sheet(results: Results) -> Sheet | None:
    """One row per arm and group of flows: application-level figures; None if there is only one group.

    The results table covers a single group of bulk flows.
    """
    index = results.groups
    pairs = index.pairs()
    bulk = all(group["kind"] == "bulk" for run in results.runs for group in run.summary["groups"])
    if len(index.titles) < 2 and bulk and not any(metric.of_application for _, metric in pairs):
        return None
    known = {metric.name for _, metric in pairs}
    metrics = [metric for metric in declared("group") if metric.name in known]
    swept = swept_keys(results)
    rows = []
    for arm in results.arms:
        for title in index.titles:
            group = index.at(arm.runs[0].summary, title)
            if group is not None:
                words = index.words(arm.runs[0].summary, title)
                count = f"{words} ×{group['flows']}" if group["flows"] > 1 else words
                cells = [
                    # One flow is always fair to itself.
                    "–"
                    if metric.name == "jain_goodput" and group["flows"] == 1
                    else _text(metric, [index.value(run.summary, title, metric) for run in arm.runs])
                    for metric in metrics
                ]
                rows.append((*words_of(arm, swept), count, *cells))
        if _is_mixed(arm.runs[0]):
            rows.append((*words_of(arm, swept), *_all_tcp(arm, metrics)))
    headings = ("queue", *swept, "traffic", *(metric.heading for metric in metrics))
    of_whole = {"lost_packets": "lost", "video_rate_bps": "video", "video_stalled_ms": "stalled"}
    counted = [words for name, words in of_whole.items() if name in known]
    whole = f"; {', '.join(counted)}: over the whole run" if counted else ""
    caption = f"flows of a group together, after the warm-up{whole}; {interval_note(*repeats_of(results))}"
    return Sheet("Application-level figures", caption, headings, tuple(rows), 2 + len(swept))


def overview_sheet(results: Results) -> Sheet | None:
    """One row per arm: delay and goodput each way and application quality; None without application quality."""
    shown = overview_metrics(results)
    if not any(metric.group for metric, _ in shown):
        return None
    swept = swept_keys(results)
    both = len(results.directions) > 1

    def heading(metric: Metric, queue: str) -> str:
        where = metric.group or (queue if both or "/" in queue else "")
        words = (
            metric.declared.heading.replace("p95", "delay p95")
            if metric.name == "sojourn_p95_ms"
            else metric.declared.heading
        )
        return f"{where} {words}".strip()

    headings = [heading(metric, queue) for metric, queue in shown]
    rows = [(*words_of(arm, swept), *(_cell(metric, arm, queue) for metric, queue in shown)) for arm in results.arms]
    notes = ["delay: sojourn time", left_out(results), interval_note(*repeats_of(results))]
    caption = "; ".join(filter(None, notes)) + above_capacity(results)
    return Sheet("At a glance", caption, ("queue", *swept, *headings), tuple(rows), 1 + len(swept))


def inner_sheet(results: Results) -> Sheet | None:
    """One row per arm, queue and inner queue; None if no discipline has inner queues."""
    swept = swept_keys(results)
    both = len(results.queues) > 1
    found = [
        (arm, queue, name)
        for arm in results.arms
        for queue in results.queues
        if has_queue(arm.runs[0].summary, queue)
        for name in inner_queues(results)
        if name in queue_at(arm.runs[0].summary, queue).get("queues", {})
    ]
    if not found:
        return None
    # What only CAKE's tins have.
    shown = [
        metric.name
        for metric in declared("inner_queue")
        if not all(
            math.isnan(metric.of(queue_at(arm.runs[0].summary, queue)["queues"][name])) for arm, queue, name in found
        )
    ]
    links = links_of(results)
    rows = [
        (
            _discipline(links, arm, queue),
            *(str(arm.set.get(key, "")) for key in swept),
            *([queue] if both else []),
            name,
            *(_cell(metric, arm, queue) for metric in inner_metrics(name) if metric.declared.name in shown),
        )
        for arm, queue, name in found
    ]
    words = ("queue", *swept, *([queue_heading(results)] if both else []), "inner queue")
    headings = (*words, *(metric.heading for metric in declared("inner_queue") if metric.name in shown))
    caption = (
        f"p50, p95: sojourn time; packets, drops and marks count the whole run; {interval_note(*repeats_of(results))}"
    )
    return Sheet("Inner queues", caption, headings, tuple(rows), len(words))


def stations_sheet(results: Results) -> Sheet | None:
    """One row per arm and station; None without Wi-Fi."""
    swept, shown = swept_keys(results), declared("station")
    rows = [
        (
            *words_of(arm, swept),
            name,
            *(_text(metric, [metric.of(stations(run.summary)[name]) for run in arm.runs]) for metric in shown),
        )
        for arm in results.arms
        for name in stations(arm.runs[0].summary)
    ]
    if not rows:
        return None
    caption = (
        "airtime: of frames and their acknowledgements; frames: per transmission; Mbit/s: of IP packets; retries and "
        f"lost count the whole run; {interval_note(*repeats_of(results))}"
    )
    headings = ("queue", *swept, "station", *(metric.heading for metric in shown))
    return Sheet("Wi-Fi stations", caption, headings, tuple(rows), 2 + len(swept))


def results_table(results: Results, *, width: int = PLAIN_WIDTH) -> Table:
    """``results_sheet`` for a terminal; if it is too wide, columns are omitted in the order of ``EXPENDABLE``."""
    metrics = shown_metrics(results)
    sheet = results_sheet(results, metrics)
    dropped: list[Metric] = []
    for name in EXPENDABLE:
        if natural_width(sheet) <= width:
            break
        gone = next((metric for metric in metrics if metric.name == name), None)
        if gone is not None:
            dropped.append(gone)
            metrics = [metric for metric in metrics if metric is not gone]
            sheet = results_sheet(results, metrics)
    if dropped:
        words = ", ".join(metric.declared.heading.partition(" ")[0] for metric in dropped)
        sheet = replace(sheet, caption=f"{sheet.caption}; without {words}, for lack of width")
    return as_table(sheet, narrow=natural_width(sheet) > width)


def groups_table(results: Results, *, width: int = PLAIN_WIDTH) -> Table | None:
    """``groups_sheet`` for a terminal, as ``groups_as_table``."""
    sheet = groups_sheet(results)
    return None if sheet is None else groups_as_table(sheet, width)


def groups_as_table(sheet: Sheet, width: int = PLAIN_WIDTH) -> Table:
    """A sheet of groups for a terminal; if it is too wide, columns are omitted as in ``EXPENDABLE_OF_GROUPS``."""
    heading_of = {metric.name: metric.heading for metric in declared("group")}
    return _narrowed(sheet, width, [heading_of[name] for name in EXPENDABLE_OF_GROUPS])


def fitting(sheet: Sheet | None, width: int = PLAIN_WIDTH, rows: int | None = None) -> Table | None:
    """A sheet for a terminal; if it is too wide, columns are omitted from the right. None beyond ``rows`` rows."""
    if sheet is None or (rows is not None and len(sheet.rows) > rows):
        return None
    return _narrowed(sheet, width, sheet.headings[: sheet.words : -1])


def _narrowed(sheet: Sheet, width: int, expendable: Sequence[str]) -> Table:
    """A sheet for a terminal, without as many of the expendable columns, in this order, as there is no room for."""
    gone: list[str] = []
    kept = sheet
    for heading in expendable:
        if natural_width(kept) <= width:
            break
        if heading in kept.headings:
            gone.append(heading)
            kept = kept.without([heading], f"{sheet.caption}; without {', '.join(gone)}, for lack of width")
    return as_table(kept, narrow=natural_width(kept) > width)


def shortened(sheet: Sheet, rows: int, where: str) -> Sheet:
    """The first rows of a sheet, with a note ``where`` the others are."""
    if len(sheet.rows) <= rows:
        return sheet
    note = f"the first {rows} of {len(sheet.rows)} rows; {where}"
    return replace(sheet, rows=sheet.rows[:rows], caption=f"{note}\n{sheet.caption}")


def natural_width(sheet: Sheet) -> int:
    """The width of a sheet, in characters, without breaking a word or a number."""
    console = Console(width=10_000)
    return Measurement.get(console, console.options, as_table(replace(sheet, title="", caption=""))).maximum


def as_table(sheet: Sheet, *, narrow: bool = False) -> Table:
    """A sheet for a terminal; if ``narrow``, breaks the headings of swept keys at their dots, and their values."""
    table = titled(sheet.title, sheet.caption)
    # A label breaks between its words.
    words = [word for row in sheet.rows for word in row[0].split()]
    table.add_column(sheet.headings[0], overflow="fold", min_width=min(max(map(len, words), default=8), 24))
    for heading in sheet.headings[1 : sheet.words]:
        broken = heading.replace(".", ".\n") if narrow else heading
        table.add_column(
            broken,
            justify="left" if heading in ("way", "traffic", "inner queue", "station") else "right",
            overflow="fold",
        )
    for heading in sheet.headings[sheet.words :]:
        table.add_column(heading.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in sheet.rows:
        # As text: rich would interpret brackets in a label as markup.
        table.add_row(*map(Text, row))
    return table


def titled(title: str, caption: str) -> Table:
    """An empty table for a terminal between its title and its caption."""
    return Table(
        # As text: rich would interpret brackets as markup.
        title=Text(title),
        caption=Text(caption),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        padding=(0, 1, 0, 0),
    )


def sheet_html(sheet: Sheet) -> str:
    """A sheet as an HTML table, for a notebook."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in sheet.headings)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell).replace(chr(10), '<br><small>')}</td>" for cell in row) + "</tr>"
        for row in sheet.rows
    )
    return (
        f"<table><caption>{escape(sheet.title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{escape(sheet.caption)}</p>"
    )


def swept_keys(results: Results) -> list[str]:
    """The keys that the experiment sweeps."""
    return list(dict.fromkeys(key for arm in results.arms for key in arm.set))


def words_of(arm: Arm, swept: Sequence[str]) -> tuple[str, ...]:
    """The label of an arm and its values of the swept keys."""
    return (arm.label, *(str(arm.set.get(key, "")) for key in swept))


def repeats_of(results: Results) -> tuple[int, int]:
    """The smallest and the largest number of repeats of an arm; they differ if the experiment was interrupted."""
    found = [len(arm.runs) for arm in results.arms] or [0]
    return min(found), max(found)


def plain(renderable: RenderableType, width: int = PLAIN_WIDTH) -> str:
    """A rich renderable as text without colour."""
    # In a notebook rich would display what is captured, too.
    console = Console(width=width, no_color=True, force_terminal=False, force_jupyter=False)
    with console.capture() as capture:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _cell(metric: Metric, arm: Arm, queue: str) -> str:
    return _text(metric.declared, [metric.value(run.summary, queue) for run in arm.runs])


def _text(metric: Declared, values: Iterable[float]) -> str:
    """The median of a metric's values with its interval, in the unit that people see."""
    return interval_text(median_interval([value / metric.per for value in values]), metric.digits)


def interval_text(interval: Interval, digits: int) -> str:
    """``5.12`` for one value, with its interval ``4.90–5.31`` on a second line for several; ``–`` for none.

    ``digits`` is the number of decimal places; large numbers get fewer, about three significant digits.
    """
    if math.isnan(interval.middle):
        return "–"
    # A value of zero has the digits of its interval.
    scale = interval.middle or max(abs(interval.low), abs(interval.high))
    if scale >= 10.0:
        digits = min(digits, 1 if scale < 100.0 else 0)
    elif digits > 0 and 0.0 < scale < 0.095:
        # A small value must not be shown as zero: use two significant digits.
        digits = 1 - math.floor(math.log10(scale))
    text = fixed(interval.middle, digits)
    return text if interval.n < 2 else f"{text}\n{fixed(interval.low, digits)}–{fixed(interval.high, digits)}"
