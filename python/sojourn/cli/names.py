"""``sojourn list``: lists the names accepted in an experiment, and those of its figures."""

from __future__ import annotations

import json as json_
from functools import partial
from typing import Annotated, Any, Literal, get_args

from sojourn import _core
from sojourn.cli.options import Json, listed
from sojourn.cli.parameters import argument
from sojourn.frame.registry import Over, declared
from sojourn.page.sheet import Sheet, as_table, plain

What = Literal["aqm", "tcp", "traffic", "metrics", "studies", "schema"]
OWNERS = {"group": "NAME.", "inner_queue": "queue.NAME.", "station": "station.NAME."}
"""The first part of a metric's name, with the name of the group, queue or station."""


def command(
    what: Annotated[What, argument("aqm, tcp, traffic, metrics, studies or schema")], json: Json = False
) -> None:
    """List disciplines, congestion controls, traffic models, metrics or studies, or the JSON Schema of files."""
    if what == "schema":
        print(_core.schema_json())
        return
    entries = {"studies": studies, "metrics": metrics}.get(what, partial(listed, what))()
    if json:
        print(json_.dumps(entries, indent=1, ensure_ascii=False))
        return
    headings = [name for name in ("name", "summary", "shown_in", "of", "source", "keys") if name in entries[0]]
    named = ({**entry, "keys": ", ".join(key["name"] for key in entry.get("keys", []))} for entry in entries)
    rows = tuple(tuple(entry.get(heading, "") for heading in headings) for entry in named)
    table = as_table(
        Sheet("", "", tuple(one.replace("_", " ") for one in headings), rows, shares=(None,) * len(headings))
    )
    table.padding = (0, 2, 0, 0)
    print(plain(table))


def metrics() -> list[dict[str, Any]]:
    """The metrics: the name of each, its words, the unit in which tables show it, and whose number it is."""
    return [
        {"name": OWNERS.get(one.over, "") + one.name, "summary": one.words, "shown_in": one.unit}
        | {"of": one.over.replace("_", " ")}
        for one in declared(*get_args(Over))
    ]


def studies() -> list[dict[str, Any]]:
    """The studies: name, summary and source of each."""
    from sojourn.studies import available

    return [{"name": study.name, "summary": study.title, "source": study.source} for study in available()]
