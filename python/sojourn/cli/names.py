"""``sojourn list``: lists the names accepted in an experiment."""

from __future__ import annotations

import json as json_
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from sojourn import _core
from sojourn.cli.options import Json
from sojourn.page.tables import plain


class What(StrEnum):
    """What to list."""

    AQM = "aqm"
    TCP = "tcp"
    TRAFFIC = "traffic"
    STUDIES = "studies"
    SCHEMA = "schema"


def command(
    what: Annotated[What, typer.Argument(help="aqm, tcp, traffic, studies or schema")], json: Json = False
) -> None:
    """List disciplines, congestion controls, traffic models or studies, or the JSON Schema of files (for editors)."""
    if what is What.SCHEMA:
        print(_core.schema_json())
        return
    entries = LISTS[what]()
    print(json_.dumps(entries, indent=1, ensure_ascii=False) if json else plain(_table(entries)))


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


def _table(entries: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0))
    has_keys = any("keys" in entry for entry in entries)
    for heading in ("name", "summary", "source", *(["keys"] if has_keys else [])):
        table.add_column(heading, overflow="fold")
    for entry in entries:
        keys = [", ".join(key["name"] for key in entry.get("keys", []))] if has_keys else []
        table.add_row(entry["name"], entry.get("summary", ""), entry.get("source", ""), *keys)
    return table
