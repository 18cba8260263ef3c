"""``sojourn doctor``: shows requirements and whether they are met."""

from __future__ import annotations

import json as json_
import platform
from dataclasses import asdict
from importlib import metadata
from typing import Annotated, Any

import typer

from sojourn import _core, linux
from sojourn.cli.options import Json, lab
from sojourn.cli.outcome import FAILED
from sojourn.cli.parameters import option
from sojourn.linux import datapath
from sojourn.linux.lab import examined
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


def command(
    on: Annotated[str | None, option("Examine the hosts of a testbed, lab.toml, instead of this one.", "FILE")] = None,
    json: Json = False,
) -> None:
    """Show versions, backends and packages, and what is missing."""
    if on is not None:
        _examine(on, json=json)
        return
    # The first is the one that is imported.
    found = ((name, next(iter(metadata.distributions(name=name)), None)) for name in _PACKAGES)
    versions = {name: one.version for name, one in found if one is not None}
    lacking = datapath.missing()
    report: dict[str, Any] = {
        "sojourn": _core.version,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": default_workers(),
        "backends": {
            "sim": {"available": True, "needs": "nothing beyond this package"},
            "linux": {"available": linux.is_available(), "needs": "the programs listed below"},
            "datapath": {
                "available": lacking is None,
                "needs": "the agent, a TUN device; without root, user namespaces too",
                **({} if lacking is None else {"missing": lacking}),
            },
        },
        "linux": [asdict(check) for check in linux.checks()],
        "packages": {name: {"version": versions.get(name), "for": use} for name, use in _PACKAGES.items()},
    }
    if json:
        print(json_.dumps(report, indent=1))
        return
    print(f"sojourn     {report['sojourn']}")
    print(f"python      {report['python']} on {report['platform']}, {report['processors']} processors")
    for name, backend in report["backends"].items():
        state = "available" if backend["available"] else "not available"
        why = backend.get("missing") or f"needs {backend['needs']}"
        print(f"{name:<11} {state}: {why}")
    for check in linux.checks():
        state = check.found or f"missing: {check.remedy}"
        print(f"  {check.name:<19} {state} (for {check.needed_for})")
    for name, package in report["packages"].items():
        print(f"{name:<11} {package['version'] or 'not installed'}: {package['for']}")


def _examine(on: str, *, json: bool) -> None:
    """Shows what each host of a testbed lacks."""
    of_file = lab(on)
    hosts = [examined(of_file, host) for host in of_file.hosts]
    if json:
        print(json_.dumps({"hosts": hosts}, indent=1))
    else:
        for host in hosts:
            print(f"{host['name']} ({host['role']}): {host.get('kernel', 'no connection')}")
            for name, wire in (host.get("wires") or {}).items():
                if wire is not None:
                    print(f"  {name:<15} {_described(wire)}")
            if host.get("without"):
                print(f"  {'without':<15} {' '.join(host['without'])}")
            for lack in host["lacks"]:
                print(f"  {'missing':<15} {lack['what']}: {lack['remedy']}")
    if any(host["lacks"] for host in hosts):
        raise typer.Exit(FAILED)


def _described(wire: dict[str, Any]) -> str:
    """An interface in a line. What a run changes for its time is no lack."""
    parts = [wire["mac"], f"MTU {wire['mtu']} B", f"{wire['mbps']} Mbit/s" if wire["mbps"] else "rate unknown"]
    parts.append(f"queue of {wire['queue']} packets")
    if wire["ring_bytes"] is not None:
        parts.append(f"{wire['ring_bytes']} B in the ring (byte queue limits)")
    parts.append(f"offloads on: {' '.join(wire['offloads'])}" if wire["offloads"] else "offloads off")
    return ", ".join([*parts, *([] if wire["up"] else ["down"])])
