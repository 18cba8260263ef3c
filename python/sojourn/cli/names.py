"""``sojourn list``: lists the names accepted in an experiment."""

from __future__ import annotations

import json as json_
from typing import Annotated, Any, Literal

from sojourn import _core
from sojourn.cli.app import argument
from sojourn.cli.options import Json, listed
from sojourn.page.sheet import Sheet, as_table, plain

What = Literal["aqm", "tcp", "traffic", "studies", "schema"]


def command(what: Annotated[What, argument("aqm, tcp, traffic, studies or schema")], json: Json = False) -> None:
    """List disciplines, congestion controls, traffic models or studies, or the JSON Schema of files (for editors)."""
    if what == "schema":
        print(_core.schema_json())
        return
    entries = studies() if what == "studies" else listed(what)
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
