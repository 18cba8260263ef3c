"""Flows as a table, group by group, with all figures of a summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sojourn.frame.groups import totals_of
from sojourn.frame.registry import unit_of
from sojourn.frame.results import Results, Run
from sojourn.frame.statistics import median_interval
from sojourn.page.sheet import Sheet
from sojourn.page.tables import interval_text, repeats_note, sheet_of

_LEFT_OUT = ("traffic", "flow", "sent_bytes", "received_bytes")
"""Keys that identify a flow, or whose count its goodput replaces."""
_NOT_OF_PING = ("goodput_bps", "retransmits")


def flows_sheet(results: Results) -> Sheet | None:
    """A typical flow of every group: the median over its flows, then over the repeats; None without flows."""
    groups = list(dict.fromkeys(group for run in results.runs for group in _members(run)))
    names = dict.fromkeys(name for run in results.runs for flow in run.summary["flows"] for name in _numbers(flow))
    shown = [name for name in names if any(_typical(run, group, name) for run in results.runs for group in groups)]
    rows = []
    for arm in results.arms:
        for group in groups:
            if members := _members(arm.runs[0]).get(group):
                cells = [_cell([_typical(run, group, name) for run in arm.runs], name) for name in shown]
                rows.append((arm.label, arm, [f"{len(members)} {members[0]['kind']}, {group[1]}", *cells]))
    caption = f"median over the flows of a group; {repeats_note(results)}"
    headings = map(_heading, shown)
    return sheet_of(results, "A flow of each group", caption, ["traffic"], headings, rows) if rows else None


def _numbers(flow: Mapping[str, Any]) -> dict[str, float]:
    """A flow's metrics by key; for a distribution its median and 95th percentile."""
    numbers: dict[str, float] = {}
    for key, value in flow.items():
        if key in _LEFT_OUT or (flow["kind"] == "ping" and key in _NOT_OF_PING):
            continue
        if isinstance(value, dict):
            stem, _, unit = key.rpartition("_")
            for quantile in ("p50", "p95"):
                if value.get(quantile) is not None:
                    numbers[f"{stem}_{quantile}_{unit}"] = float(value[quantile])
        elif isinstance(value, int | float):
            numbers[key] = float(value)
    return numbers


_Group = tuple[int | str, str]
"""A group by its number, or a total by its name, and the direction."""


def _members(run: Run) -> dict[_Group, list[Mapping[str, Any]]]:
    """The flows of each group or total, in the order of the file."""
    totals = totals_of(run.summary)
    members: dict[_Group, list[Mapping[str, Any]]] = {}
    for flow in run.summary["flows"]:
        key = (flow["traffic"], flow["direction"])
        members.setdefault((totals.get(key, flow["traffic"]), flow["direction"]), []).append(flow)
    return members


def _typical(run: Run, group: _Group, name: str) -> float:
    of_group = map(_numbers, _members(run).get(group, ()))
    values = [numbers[name] for numbers in of_group if name in numbers]
    return float(np.median(values)) if values else float("nan")


def _cell(values: list[float], name: str) -> str:
    unit = unit_of(name)
    per = unit.per if unit.is_measured else 1.0
    return interval_text(median_interval([value / per for value in values]), 2)


def _heading(name: str) -> str:
    unit = unit_of(name)
    words = name.removesuffix(unit.ending) if unit.is_measured else name
    return f"{words.replace('_', ' ')} {unit.shown if unit.is_measured else ''}".rstrip()
