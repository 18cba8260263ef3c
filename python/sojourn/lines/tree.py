"""An operator's tree from LibreQoS' files: classes of HTB for sites and circuits, and an evening's traffic.

Sources: LibreQoS' documentation of ``ShapedDevices.csv`` and ``network.json``, and its examples of both.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from warnings import warn

from sojourn._core import ExperimentError
from sojourn.frame.notes import Note
from sojourn.lines.course import table
from sojourn.lines.formats import text_of

COLUMNS = ("download min mbps", "upload min mbps", "download max mbps", "upload max mbps")
MOST_MBPS = 1e6
DURATION_S = 10.0
STARTS = "0..2 s"
"""When what begins by itself does so, of a run of ten seconds."""

EVENING: dict[str, tuple[float, dict[str, object]]] = {
    "web": (1.0, {"kind": "web", "start": STARTS}),
    "video": (0.5, {"kind": "video", "start": STARTS}),
    "game": (0.2, {"kind": "game"}),
    "download": (0.2, {"kind": "bulk", "start": STARTS}),
    "upload": (0.05, {"kind": "bulk", "direction": "up", "start": STARTS}),
}
"""What subscribers do, with the share of them that does it at the same time: assumptions, to be changed in the file."""


@dataclass(frozen=True)
class Node:
    """A site or access point."""

    name: str
    down: float
    up: float
    children: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a circuit may always send at, and the most, in Mbit/s: down and up each."""

    rate: tuple[float, float]
    ceil: tuple[float, float]

    @property
    def name(self) -> str:
        """Its most each way, ``100/20``."""
        return f"{self.ceil[0]:g}/{self.ceil[1]:g}"


@dataclass
class Tree:
    """The sites, and the circuits of each by plan; those without a site are under ``""``."""

    sites: tuple[Node, ...]
    circuits: dict[str, Counter[Plan]] = field(default_factory=dict)


def read(file: Path, network: Path | None = None) -> Tree | None:
    """The tree of ``ShapedDevices.csv`` and ``network.json``, by default the one beside it; None for another file."""
    text = text_of(file)
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    if not first.lower().replace('"', "").startswith("circuit id,"):
        if network is not None:
            raise ExperimentError(f"--network: goes with ShapedDevices.csv of LibreQoS, which {file} is not")
        return None
    sites = network or file.with_name("network.json")
    tree = Tree(_nodes(sites, text_of(sites)) if network or sites.exists() else ())
    nodes = Counter(node.name for top in tree.sites for node in _below(top))
    if twice := [name for name, count in nodes.items() if count > 1]:
        raise ExperimentError(
            f"{sites}: two nodes are called {twice[0]!r}; circuits name their parents, so names differ"
        )
    rows = [line for line in text.splitlines(keepends=True) if not line.startswith("#")]
    skipped = len(text.splitlines()) - len(rows)
    reader = csv.DictReader(rows)
    reader.fieldnames = [name.strip().lower() for name in reader.fieldnames or ()]
    if missing := [name for name in ("circuit id", "parent node", *COLUMNS) if name not in reader.fieldnames]:
        raise ExperimentError(f"{file}: has no column {missing[0]!r}; must have those of ShapedDevices.csv")
    seen: dict[str, tuple[Plan, str]] = {}
    for row in reader:
        line = f"{file}:{reader.line_num + skipped}"
        if not any(cell.strip() for cell in row.values() if isinstance(cell, str)):
            continue
        try:
            circuit, parent = (row[name].strip() for name in ("circuit id", "parent node"))
            numbers = [float(row[name]) for name in COLUMNS]
        except (AttributeError, TypeError, ValueError):
            raise ExperimentError(f"{line}: damaged line; must have numbers for the rates in Mbit/s") from None
        low, high = numbers[:2], numbers[2:]
        if not all(0 < least <= most <= MOST_MBPS for least, most in zip(low, high, strict=True)):
            raise ExperimentError(f"{line}: must have rates above 0, and no minimum above its maximum")
        parent = "" if parent.lower() in ("", "none") else parent
        if nodes and parent and parent not in nodes:
            raise ExperimentError(f"{line}: got parent node {parent!r}; must be one of {sites}")
        plan = Plan((low[0], low[1]), (high[0], high[1]))
        if circuit in seen:  # A further device.
            if seen[circuit] != (plan, parent):
                warn(f"{line}: circuit {circuit} has another plan or parent above; that one counts", Note, stacklevel=2)
            continue
        seen[circuit] = plan, parent
        tree.circuits.setdefault(parent if nodes else "", Counter())[plan] += 1
    if not seen:
        raise ExperimentError(f"{file}: has no circuits")
    if not nodes and any(parent for _, parent in seen.values()):
        warn(f"no {sites}: parent nodes are left out, and every circuit stands on the link", Note, stacklevel=2)
    return tree


def _nodes(file: Path, text: str) -> tuple[Node, ...]:
    try:
        return tuple(_node(str(name), value) for name, value in json.loads(text).items())
    except json.JSONDecodeError as error:
        raise ExperimentError(f"{file}: not JSON from line {error.lineno}, column {error.colno} on") from None
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        must = "must have sites with downloadBandwidthMbps and uploadBandwidthMbps above 0, and children"
        raise ExperimentError(f"{file}: damaged; {must}") from None


def _node(name: str, value: Mapping[str, Any]) -> Node:
    down, up = (float(value[f"{way}loadBandwidthMbps"]) for way in ("down", "up"))
    if not all(0 < rate <= MOST_MBPS for rate in (down, up)):
        raise ValueError
    children = (value.get("children") or {}).items()
    return Node(name, down, up, tuple(_node(str(of), below) for of, below in children))


def _below(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _below(child)


def experiment(tree: Tree, source: str, duration_s: float | None = None) -> str:
    """The experiment file: CAKE for each circuit, a FIFO for each, and one FIFO for all."""
    names: dict[str, str] = {}
    long = duration_s or DURATION_S
    circuits = sum(sum(plans.values()) for plans in tree.circuits.values())
    classes: list[str] = []
    for site in tree.sites:
        classes += _site(site, None, tree, names)
    tops = [(site.down, site.up) for site in tree.sites]
    tops += [rate for plan, n in tree.circuits.get("", {}).items() for rate in [plan.ceil] * n]
    down, up = (sum(rates) for rates in zip(*tops, strict=True))
    lines = [
        f"# From {source}: {circuits} circuits. The traffic is an assumption, to be changed as the queues are.",
        *table("[experiment]", {"name": source, "duration": f"{long:g} s", "warmup": f"{long / 4:g} s"}),
        "# As fast as all that stands directly below it.",
        *table("[link]", {"rate": _rate(down), "up": {"rate": _rate(up)}, "buffer": "100 ms"}),
        *classes,
    ]
    traffic: list[str] = []
    done = dict.fromkeys(EVENING, 0.0)
    for parent, plans in tree.circuits.items():
        for plan, count in plans.items():
            name = _name(f"{parent or 'circuit'} {plan.name}", names, 34)
            lines += _class({"name": name, "count": count}, names.get(parent), plan.rate, plan.ceil)
            for activity, (share, keys) in EVENING.items():
                done[activity] += share * count
                active = min(int(done[activity]), count)
                done[activity] -= active
                starts = {"start": f"0..{long / 5:g} s"} if "start" in keys else {}
                if active:
                    own = {"name": f"{name} {activity}", "total": f"{plan.name} {activity}", "count": active}
                    own |= {"class": f"{name}-{{i}}", "host": f"{name}-{{i}}", "rtt": "30 ms"}
                    traffic += table("[[traffic]]", own | keys | starts)
    arms = [("CAKE each", "cake", {}), ("a FIFO each", "pfifo", {}), ("one FIFO", "pfifo", {"classes": False})]
    for label, aqm, more in arms:
        lines += table("[[queue]]", {"label": label, "aqm": aqm, **more})
    return "\n".join([*lines, *traffic])


def _site(node: Node, parent: str | None, tree: Tree, names: dict[str, str]) -> list[str]:
    """A site may always send at what is promised below it, and at most at its bandwidth."""
    name = _name(node.name, names, 40)
    lines = _class({"name": name}, parent, _promised(node, tree), (node.down, node.up))
    for child in node.children:
        lines += _site(child, name, tree, names)
    return lines


def _promised(node: Node, tree: Tree) -> tuple[float, float]:
    """The sum of the rates below a site, at most its bandwidth; a hundredth of that if nothing is below."""
    below = [plan.rate for plan, count in tree.circuits.get(node.name, {}).items() for _ in range(count)]
    below += [_promised(child, tree) for child in node.children]
    down, up = (sum(rates) for rates in zip((0.0, 0.0), *below, strict=True))
    return min(down or node.down / 100, node.down), min(up or node.up / 100, node.up)


def _class(
    keys: Mapping[str, object], parent: str | None, rate: tuple[float, float], ceil: tuple[float, float]
) -> list[str]:
    """A class with what it may always send at, and the most, down and up."""
    down, up = ({"rate": _rate(least), "ceil": _rate(most)} for least, most in zip(rate, ceil, strict=True))
    return table("[[class]]", {**keys, **({"parent": parent} if parent else {}), **down, "up": up})


def _rate(mbps: float) -> str:
    return f"{mbps:.6g} Mbit/s"


def _name(given: str, names: dict[str, str], longest: int) -> str:
    """A name for a class, unlike all before."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", given).strip("-")
    plain = (plain if plain[:1].isalpha() else f"n-{plain}")[: longest - 4]
    number = 1
    name = plain
    while name in names.values():
        number += 1
        name = f"{plain}_{number}"
    names[given] = name
    return name
