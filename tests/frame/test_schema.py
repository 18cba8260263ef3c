"""schema.py describes the results that the simulator writes, and docs/results.md names every key."""

from __future__ import annotations

import re
import typing
from typing import Any

import pytest

import sojourn as sj
from conftest import ROOT
from sojourn import schema

COMMON = """
experiment = { name = "all", duration = "4 s", warmup = "1 s" }
record = { one_way = true, qoo = true }
queue = [{ aqm = "dualpi2" }, { aqm = "fq_codel" }, { aqm = "cake", bandwidth = "8 Mbit/s" }]
"""
WIRED = """
link = { rate = "20 Mbit/s", loss = 0.01, duplicate = 0.01 }
traffic = [
  { kind = "bulk", flows = 2, rtt = "20 ms" },
  { kind = "files", flows = 1, size = "20 kB", rtt = "20 ms" },
  { kind = "web", rtt = "20 ms" },
  { kind = "voip", count = 2, rtt = "20 ms" },
  { kind = "video", rtt = "20 ms" },
  { kind = "call", rtt = "20 ms", direction = "down" },
  { kind = "ping", rtt = "20 ms", interval = "100 ms" },
]
"""
LINUX_ONLY = {"kernel", "invalid", "lateness_ms", "notes", "path_cpu_s"}
"""Of runs on Linux, and of real packets."""
OF_THE_COMMAND = {"partial", "planned_runs", "until"}


@pytest.fixture(scope="module")
def summaries() -> list[Any]:
    texts = (COMMON + WIRED, (ROOT / "examples" / "wifi.toml").read_text())
    return [sj.run_text(text, set={"experiment.repeat": 1}).summary for text in texts]


def _compare(value: Any, kind: Any, where: str, seen: dict[type, set[str]]) -> None:
    """Compares a value with its type: every key is declared, and no required one is missing."""
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.NotRequired:
        _compare(value, parts[0], where, seen)
    elif typing.is_typeddict(kind):
        declared = typing.get_type_hints(kind, include_extras=True)
        required = {key for key, one in declared.items() if typing.get_origin(one) is not typing.NotRequired}
        assert required <= value.keys() <= declared.keys(), f"{where}: {sorted(required ^ value.keys())}"
        seen.setdefault(kind, set()).update(value)
        for key, one in value.items():
            _compare(one, declared[key], f"{where}.{key}", seen)
    elif origin is dict:
        for key, one in value.items():
            _compare(one, parts[1], f"{where}.{key}", seen)
    elif origin is list:
        for one in value:
            _compare(one, parts[0], f"{where}[]", seen)


@pytest.fixture(scope="module")
def seen(summaries: list[Any]) -> dict[type, set[str]]:
    """The keys that were found, per type."""
    found: dict[type, set[str]] = {}
    for summary in summaries:
        _compare(summary, schema.Summary, "summary", found)
    return found


def test_every_key_is_declared_and_none_that_does_not_occur(seen: dict[type, set[str]]):
    for kind, keys in seen.items():
        declared = set(typing.get_type_hints(kind)) - LINUX_ONLY - OF_THE_COMMAND
        assert keys == declared, f"{kind.__name__}: {sorted(declared ^ keys)}"
    types = {one for one in vars(schema).values() if typing.is_typeddict(one)} - {schema.Until, schema.Lateness}
    assert types <= seen.keys()


def test_the_page_of_results_names_every_key(seen: dict[type, set[str]]):
    page = (ROOT / "docs" / "results.md").read_text()
    named = set(re.findall(r"[a-z0-9_]+", page))
    assert {key for keys in seen.values() for key in keys} - named == set()
