"""Results as tables for people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.table import Table

from sojourn.frame import metrics as frame
from sojourn.frame.groups import above_capacity, links_of, shown_groups
from sojourn.frame.metrics import Metric, has_queue, queue_at, stations
from sojourn.frame.registry import Declared, declared
from sojourn.frame.results import Arm, Results, Run
from sojourn.frame.statistics import Interval, fixed, interval_note, median_interval
from sojourn.page.sheet import PLAIN_WIDTH, Sheet, as_table, narrowed, natural_width

EXPENDABLE = (
    "sojourn_mean_ms", "marked_packets", "jain_goodput", "dropped_packets", "lost_packets", "utilization",
    "sojourn_p50_ms",
)  # fmt: skip
"""The columns to omit on a narrow terminal, in this order; the queue and swept keys are never omitted."""
EXPENDABLE_OF_GROUPS = (
    "jain_goodput", "one_way_p95_ms", "video_stalled_ms", "page_load_n", "completion_n", "page_load_p95_ms",
    "completion_p95_ms", "lost_packets", "rtt_p50_ms", "completion_p50_ms", "video_rate_bps", "rtt_p95_ms",
)  # fmt: skip
"""The same for the table of groups."""


def sheet_of(
    results: Results,
    title: str,
    caption: str,
    own: Sequence[str],
    headings: Iterable[str],
    rows: Iterable[tuple[str, Arm, Iterable[str]]],
) -> Sheet:
    """A sheet of arms. A row has its label, its arm's values of the swept keys, the words of ``own`` and numbers."""
    swept = swept_keys(results)
    cells = [(label, *(str(arm.set.get(key, "")) for key in swept), *rest) for label, arm, rest in rows]
    return Sheet(title, caption, ("queue", *swept, *own, *headings), tuple(cells), 1 + len(swept) + len(own))


def results_sheet(results: Results, metrics: Sequence[Metric] | None = None) -> Sheet:
    """One row per arm and queue of the network: medians over the repeats, confidence intervals below."""
    shown = shown_metrics(results) if metrics is None else metrics
    if results.has_several_links:
        # Goodput belongs to the flows, not to a link.
        shown = [metric for metric in shown if metric.name != "goodput_bps"]
    summary = results.summary
    title = f"{summary['experiment']} ({summary['backend']})"
    if results.partial:
        title += f", stopped early: {len(results.runs)} of {summary['planned_runs']} runs"
    links, which = links_of(results), queue_heading(results)
    # What applications see is the same at each queue.
    is_of_arms = metrics is not None and all(metric.group for metric in metrics)
    which = [] if is_of_arms else which
    return sheet_of(
        results,
        title,
        _caption(shown, repeats_note(results)) + _without_chance(results) + above_capacity(results),
        which,
        (metric.heading for metric in shown),
        (
            (
                arm.label if is_of_arms else _discipline(links, arm, queue),
                arm,
                [*([queue] if which else []), *(_cell(metric, arm, queue) for metric in shown)],
            )
            for arm in results.arms
            for queue in (results.queues[:1] if is_of_arms else results.queues)
            if is_of_arms or has_queue(arm.runs[0].summary, queue)
        ),
    )


def _discipline(links: Mapping[str, Sequence[Mapping[str, Any]]], arm: Arm, queue: str) -> str:
    """The discipline of a queue: the arm, or the link's own, which it has in every arm."""
    name, _, way = queue.rpartition("/")
    for link in links.get(json.dumps(arm.set), ()):
        up = link.get("up", {}) if way == "up" else {}
        if name in ("", link.get("name")) and (own := up.get("queue") or link.get("queue")):
            return arm.label if own["label"] == arm.label else f"{own['label']} (with {arm.label})"
    return arm.label


def queue_heading(results: Results) -> list[str]:
    """The heading of the column that identifies the queues of a network; none if there is one queue."""
    return ["link" if results.has_several_links else "way"] if len(results.queues) > 1 else []


def shown_metrics(results: Results) -> list[Metric]:
    """The columns of the results table: fairness only if all TCP flows are alike; else the table of groups has it."""
    mixed = any(map(_is_mixed, results.runs[:1]))
    return [metric for metric in frame.of_queues(results) if not (mixed and metric.name == "jain_goodput")]


def _tcp_groups(run: Run) -> list[Mapping[str, Any]]:
    """The groups of TCP flows: those of datagrams and echo requests count what they lose."""
    return [group for group in shown_groups(run.summary) if "lost_packets" not in group]


def _is_mixed(run: Run) -> bool:
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


def _caption(metrics: Sequence[Metric], repeats: str) -> str:
    """The meaning of the numbers in the present columns."""
    names = {metric.name for metric in metrics}
    times = [metric.declared.head for metric in metrics if metric.name.startswith("sojourn_")]
    words = {"dropped_packets": "drops", "marked_packets": "marks", "lost_packets": "lost"}
    counts = [word for name, word in words.items() if name in names]
    counted = " and ".join(filter(None, [", ".join(counts[:-1]), *counts[-1:]]))
    parts = [f"{', '.join(times)}: sojourn time" if times else "", f"{counted} count the whole run" if counts else ""]
    return "; ".join(filter(None, [*parts, repeats]))


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
    """One row per arm and group of flows: application-level figures; None if the results table has the only group."""
    index = results.groups
    pairs = index.pairs()
    bulk = all(group["kind"] == "bulk" for run in results.runs for group in run.summary["groups"])
    if len(index.titles) < 2 and bulk and not any(metric.of_application for _, metric in pairs):
        return None
    known = {metric.name for _, metric in pairs}
    metrics = [metric for metric in declared("group") if metric.name in known]
    rows: list[tuple[str, Arm, list[str]]] = []
    for arm in results.arms:
        for title in index.titles:
            group = index.at(arm.runs[0].summary, title)
            if group is not None:
                words = index.words(arm.runs[0].summary, title)
                cells = [
                    # One flow is always fair to itself.
                    "–"
                    if metric.name == "jain_goodput" and group["flows"] == 1
                    else _text(metric, index.values(title, metric, [run.summary for run in arm.runs]))
                    for metric in metrics
                ]
                rows.append((arm.label, arm, [f"{words} ×{group['flows']}" if group["flows"] > 1 else words, *cells]))
        if _is_mixed(arm.runs[0]):
            rows.append((arm.label, arm, _all_tcp(arm, metrics)))
    of_whole = {"lost_packets": "lost", "video_rate_bps": "video", "video_stalled_ms": "stalled"}
    counted = [words for name, words in of_whole.items() if name in known]
    whole = f"; {', '.join(counted)}: over the whole run" if counted else ""
    caption = f"flows of a group together, after the warm-up{whole}; {repeats_note(results)}"
    headings = [metric.heading for metric in metrics]
    return sheet_of(results, "Application-level figures", caption, ["traffic"], headings, rows)


def overview_sheet(results: Results) -> Sheet | None:
    """One row per arm: delay and goodput each way and application quality; None without application quality."""
    shown = frame.overview_metrics(results)
    if not any(metric.group for metric, _ in shown):
        return None
    both = len(results.directions) > 1

    def heading(metric: Metric, queue: str) -> str:
        where = metric.group or (queue if both or "/" in queue else "")
        words = metric.declared.heading
        return f"{where} {words.replace('p95', 'delay p95') if metric.name == 'sojourn_p95_ms' else words}".strip()

    notes = ["delay: sojourn time", frame.left_out(results), repeats_note(results)]
    caption = "; ".join(filter(None, notes)) + above_capacity(results)
    rows = ((arm.label, arm, [_cell(metric, arm, queue) for metric, queue in shown]) for arm in results.arms)
    return sheet_of(results, "At a glance", caption, [], [heading(*one) for one in shown], rows)


def inner_sheet(results: Results) -> Sheet | None:
    """One row per arm, queue and inner queue; None if no discipline has inner queues."""
    names = frame.inner_queues(results)
    found = [
        (arm, queue, name)
        for arm in results.arms
        for queue in results.queues
        if has_queue(arm.runs[0].summary, queue)
        for name in names
        if any(
            name in inner and frame.had_packets(inner[name])
            for inner in (queue_at(run.summary, queue).get("queues", {}) for run in arm.runs)
        )
    ]
    if not found:
        return None
    elements = [queue_at(arm.runs[0].summary, queue)["queues"][name] for arm, queue, name in found]
    # Some metrics only CAKE's tins have.
    shown = [one for one in declared("inner_queue") if not all(map(math.isnan, one.of_each(elements)))]
    links, which = links_of(results), queue_heading(results)
    rows = (
        (
            _discipline(links, arm, queue),
            arm,
            [
                *([queue] if which else []),
                name,
                *(_cell(metric, arm, queue) for metric in frame.inner_metrics(name) if metric.declared in shown),
            ],
        )
        for arm, queue, name in found
    )
    caption = f"p50, p95: sojourn time; packets, drops and marks count the whole run; {repeats_note(results)}"
    headings = [metric.heading for metric in shown]
    return sheet_of(results, "Inner queues", caption, [*which, "inner queue"], headings, rows)


def stations_sheet(results: Results) -> Sheet | None:
    """One row per arm and station; None without Wi-Fi."""
    shown = declared("station")
    rows = [
        (
            arm.label,
            arm,
            [name, *(_text(one, one.of_each([stations(run.summary)[name] for run in arm.runs])) for one in shown)],
        )
        for arm in results.arms
        for name in stations(arm.runs[0].summary)
    ]
    caption = (
        "airtime: of frames and their acknowledgements; frames: per transmission; Mbit/s: of IP packets; retries and "
        f"lost count the whole run; {repeats_note(results)}"
    )
    headings = [metric.heading for metric in shown]
    return sheet_of(results, "Wi-Fi stations", caption, ["station"], headings, rows) if rows else None


def results_table(results: Results, *, width: int = PLAIN_WIDTH) -> Table:
    """``results_sheet`` for a terminal; if it is too wide, columns are omitted in the order of ``EXPENDABLE``."""
    metrics = shown_metrics(results)
    sheet = results_sheet(results, metrics)
    dropped: list[Metric] = []
    for gone in [metric for name in EXPENDABLE for metric in metrics if metric.name == name]:
        if natural_width(sheet) <= width:
            break
        dropped.append(gone)
        sheet = results_sheet(results, [metric for metric in metrics if metric not in dropped])
    if dropped:
        words = ", ".join(metric.declared.heading.partition(" ")[0] for metric in dropped)
        sheet = replace(sheet, caption=f"{sheet.caption}; without {words}, for lack of width")
    return as_table(sheet, narrow=natural_width(sheet) > width)


def groups_table(sheet: Sheet | None, width: int = PLAIN_WIDTH) -> Table | None:
    """A sheet of groups for a terminal; if it is too wide, columns are omitted as in ``EXPENDABLE_OF_GROUPS``."""
    heading_of = {metric.name: metric.heading for metric in declared("group")}
    return None if sheet is None else narrowed(sheet, width, [heading_of[name] for name in EXPENDABLE_OF_GROUPS])


def swept_keys(results: Results) -> list[str]:
    """The keys that the experiment sweeps."""
    return list(dict.fromkeys(key for arm in results.arms for key in arm.set))


def repeats_of(results: Results) -> tuple[int, int]:
    """The smallest and the largest number of repeats of an arm; they differ if the experiment was interrupted."""
    found = [len(arm.runs) for arm in results.arms] or [0]
    return min(found), max(found)


def repeats_note(results: Results) -> str:
    """What the numbers of a table of arms are."""
    return interval_note(*repeats_of(results))


def _cell(metric: Metric, arm: Arm, queue: str) -> str:
    return _text(metric.declared, metric.values(queue, [run.summary for run in arm.runs]))


def _text(metric: Declared, values: Iterable[float]) -> str:
    """The median of a metric's values with its interval, in the unit that people see."""
    return interval_text(median_interval([value / metric.per for value in values]), metric.digits)


def interval_text(interval: Interval, digits: int) -> str:
    """``5.12``, of several values with the interval ``4.90–5.31`` below; large numbers have fewer ``digits``."""
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
