"""``sojourn list``: lists the names accepted in an experiment."""

from __future__ import annotations

import json as json_
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

from sojourn import _core
from sojourn.cli.app import argument
from sojourn.cli.options import Json
from sojourn.page.sheet import Sheet, as_table, plain


class What(StrEnum):
    """What to list."""

    AQM = "aqm"
    TCP = "tcp"
    TRAFFIC = "traffic"
    STUDIES = "studies"
    SCHEMA = "schema"


def command(what: Annotated[What, argument("aqm, tcp, traffic, studies or schema")], json: Json = False) -> None:
    """List disciplines, congestion controls, traffic models or studies, or the JSON Schema of files (for editors)."""
    if what is What.SCHEMA:
        print(_core.schema_json())
        return
    entries = LISTS[what]()
    if json:
        print(json_.dumps(entries, indent=1, ensure_ascii=False))
        return
    headings = ("name", "summary", "source", *(["keys"] if any("keys" in entry for entry in entries) else []))
    named = ({**entry, "keys": ", ".join(key["name"] for key in entry.get("keys", []))} for entry in entries)
    rows = tuple(tuple(entry.get(heading, "") for heading in headings) for entry in named)
    table = as_table(Sheet("", "", headings, rows, shares=(None,) * len(headings)))
    table.padding = (0, 2, 0, 0)
    print(plain(table))


def studies() -> list[dict[str, Any]]:
    """The studies: name, summary and source of each."""
    from sojourn.studies import available

    return [{"name": study.name, "summary": study.title, "source": study.source} for study in available()]


LISTS: dict[What, Callable[[], list[dict[str, Any]]]] = {
    What.AQM: lambda: json_.loads(_core.disciplines_json()),
    What.TCP: lambda: json_.loads(_core.congestion_controls_json()),
    What.TRAFFIC: lambda: json_.loads(_core.traffic_json()),
    What.STUDIES: studies,
}
