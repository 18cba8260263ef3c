"""``sojourn serve``: one run as it goes on, in a browser."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli.options import Set, overrides
from sojourn.cli.outcome import announce_notes, complain
from sojourn.cli.parameters import argument, option
from sojourn.cli.shell import Between, Outside, Queue, interfaces, prepared, results_of, show_aside
from sojourn.linux import Datapath
from sojourn.linux.shell import Shell
from sojourn.live.feed import Feed
from sojourn.live.server import served
from sojourn.runs.backends import Simulator
from sojourn.runs.execution import as_run
from sojourn.runs.plan import arm_of, read_plan

EVERY_S = 0.1
"""Wall time between two samples."""


@dataclass
class Paced(Simulator):
    """The simulator, ``speed`` seconds of a run in a second of the clock."""

    feed: Feed
    speed: float = 1.0

    def run(self, spec: _core.RunSpec, monitor: _core.Monitor) -> _core.Run:
        """Makes one run, of which the feed hears."""
        session = _core.Session(spec)
        names = [queue["name"] for queue in json.loads(spec.parts_json)["queues"]]
        self.feed.setter = session.set
        began = time.monotonic()
        while not session.finished and not monitor.cancelled:
            session.step(EVERY_S * self.speed)
            seen = session.observe()
            queues = [seen["queues"][name] for name in names]
            self.feed.add({"sample": {"now_s": seen["now_s"], "queues": queues, "flows": seen["flows"]}})
            time.sleep(max(began + session.now_s / self.speed - time.monotonic(), 0.0))
        return session.finish()


def command(
    words: Annotated[
        list[str], argument("The experiment, TOML, and a program to run behind its link.", "FILE [-- COMMAND...]")
    ],
    backend: Annotated[str, option("Without COMMAND: sim, or datapath (real packets).")] = Paced.name,
    queue: Queue = None,
    server: Annotated[
        list[str] | None, option("With COMMAND: start a server at the other end first; may be repeated.", "COMMAND")
    ] = None,
    between: Between = None,
    outside: Outside = None,
    speed: Annotated[float, option("With sim: simulated seconds in a second.")] = 1.0,
    host: Annotated[str, option("The address to listen on. Beyond this machine a token is needed.")] = ("127.0.0.1"),
    port: Annotated[int, option("The port; 0: any that is free.", min=0, max=65535)] = 0,
    set: Set = None,
) -> None:
    """Show one run in a browser while it goes on, and let its link and queue be changed there.

    Prints the URL to open. The run is one of the simulator, at the pace of the clock; of real packets; or with COMMAND
    of a program behind the link or beside it, as by sojourn shell. The page ends with the run, whose tables go to
    standard error.
    """
    if backend not in (Paced.name, Datapath.name):
        raise _core.ExperimentError(f'--backend: got "{backend}"; must be {Paced.name} or {Datapath.name}')
    if not (math.isfinite(speed) and speed > 0.0):
        raise _core.ExperimentError(f"--speed: got {speed:g}; must be above 0")
    feed = Feed({})
    if len(words) > 1:
        plan, program = prepared(words, queue=queue, set=set)
        where: Shell | Datapath | Paced = Shell(
            program, server or (), interfaces(between, server, outside), feed, outside
        )
        where.check(plan)
        announce_notes(where, plan)
        spec = plan[0]
    else:
        if between is not None:
            raise _core.ExperimentError("--between: needs a COMMAND, which says how long: … -- sleep 60")
        if outside is not None:
            raise _core.ExperimentError("--outside: needs a COMMAND, which reaches it")
        where = Datapath(feed) if backend == Datapath.name else Paced(feed, speed)
        plan = read_plan(words[0], overrides(set), backend=where)
        spec = plan[arm_of(plan, queue)[0]]
    parts = json.loads(spec.parts_json)
    feed.about.update(
        title=f"{spec.name}: {spec.label}",
        backend=where.name,
        speed=speed if isinstance(where, Paced) else 1.0,
        duration_s=None if isinstance(where, Shell) else spec.duration_s,
        queues=parts["queues"],
        flows=[] if isinstance(where, Shell) else parts["flows"],
        settings=json.loads(spec.document)["experiment"],
        disciplines=json.loads(_core.disciplines_json()),
    )
    with served(feed, host, port) as url:
        complain(f"open {url}")
        run = as_run(where.run(spec, _core.Monitor()))
    show_aside(results_of(plan, where.name, run))
    if isinstance(where, Shell):
        raise typer.Exit(where.status or 0)
