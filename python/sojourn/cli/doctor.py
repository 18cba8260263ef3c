"""``sojourn doctor``: shows requirements and whether they are met."""

from __future__ import annotations

import json as json_
import platform
from dataclasses import asdict
from importlib import metadata
from typing import Any

from sojourn import _core, linux
from sojourn.cli.options import Json
from sojourn.linux import datapath
from sojourn.runs.executors import default_workers

_PACKAGES = {
    "numpy": "statistics",
    "pyarrow": "Arrow tables and Parquet files",
    "matplotlib": "figures",
    "jinja2": "reports",
    "msgspec": "studies and results as types",
    "rich": "tables and progress",
    "typer": "the command line",
    "pandas": "Results.to_pandas (optional)",
}


def command(json: Json = False) -> None:
    """Show versions, backends and packages, and what is missing."""
    report: dict[str, Any] = {
        "sojourn": _core.version,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": default_workers(),
        "backends": {
            "sim": {"available": True, "needs": "nothing beyond this package"},
            "linux": {"available": linux.is_available(), "needs": "the programs listed below"},
            "datapath": {
                "available": datapath.missing() is None,
                "needs": datapath.missing() or "a TUN device; without root, user namespaces too",
            },
        },
        "linux": [asdict(check) for check in linux.checks()],
        "packages": {name: {"version": _version(name), "for": use} for name, use in _PACKAGES.items()},
    }
    if json:
        print(json_.dumps(report, indent=1))
        return
    print(f"sojourn     {report['sojourn']}")
    print(f"python      {report['python']} on {report['platform']}, {report['processors']} processors")
    for name, backend in report["backends"].items():
        print(f"{name:<11} {'available' if backend['available'] else 'not available'}: needs {backend['needs']}")
    for check in linux.checks():
        state = check.found or f"missing: {check.remedy}"
        print(f"  {check.name:<19} {state} (for {check.needed_for})")
    for name, package in report["packages"].items():
        print(f"{name:<11} {package['version'] or 'not installed'}: {package['for']}")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
