"""``sojourn compare``: compares disciplines on one link, without a file."""

from __future__ import annotations

import json as json_
from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli import options
from sojourn.cli.run import run_and_show
from sojourn.runs.plan import compare_plan
from sojourn.store.runner import Runner


def command(
    queues: Annotated[
        list[str],
        typer.Argument(
            metavar="QUEUE...",
            help="Disciplines, parameters after a colon: pie codel:target=10ms,ecn=true",
            autocompletion=options.disciplines,
        ),
    ],
    rate: Annotated[str, typer.Option(help="Rate of the bottleneck: 10mbit, 10 Mbit/s.")],
    rtt: Annotated[str, typer.Option(help="Base RTT of all flows: 100ms.")],
    flows: Annotated[int, typer.Option(min=1, help="Bulk TCP flows.")] = 1,
    tcp: Annotated[
        str,
        typer.Option(
            help="Their congestion control; sojourn list tcp.",
            autocompletion=lambda: [one["name"] for one in json_.loads(_core.congestion_controls_json())],
        ),
    ] = "cubic",
    ecn: Annotated[bool, typer.Option("--ecn", help="Flows and queues use ECN.")] = False,
    buffer: Annotated[str, typer.Option(help="Limit of every queue: 1000 packets, 150 kB, 1 bdp.")] = "1000 packets",
    duration: Annotated[str, typer.Option(help="Duration of a run.")] = "30 s",
    warmup: Annotated[str, typer.Option(help="First part of a run that the statistics omit.")] = "0 s",
    repeat: Annotated[int, typer.Option(min=1, help="Runs per queue, each with its own seed.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first run.")] = 1,
    out: options.Out = None,
    figures: options.Figures = options.BY_DEFAULT,
    backend: options.Backend = "sim",
    on: options.On = None,
    kernel: options.Kernel = None,
    jobs: options.Jobs = None,
    baseline: options.Baseline = None,
    store: options.KeptRuns = None,
    json: options.Json = False,
) -> None:
    """Compare queue disciplines under bulk TCP."""
    formats = options.formats_of(figures)
    where = options.chosen(backend, on, kernel)
    plan = compare_plan(
        queues,
        dashes="--",
        rate=rate,
        rtt=rtt,
        flows=flows,
        tcp=tcp,
        ecn=ecn,
        buffer=buffer,
        duration=duration,
        warmup=warmup,
        repeat=repeat,
        seed=seed,
    )
    where.check(plan)
    runner = Runner(where, jobs=jobs, store=options.kept_runs(store))
    run_and_show(plan, runner, out=out, figures=formats, baseline=baseline, json=json)
