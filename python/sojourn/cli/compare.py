"""``sojourn compare``: compares disciplines on one link, without a file."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from sojourn.cli import options
from sojourn.cli.parameters import argument, flag, option
from sojourn.cli.run import run_and_show
from sojourn.runs.plan import compare_plan
from sojourn.store.runner import Runner


def command(
    queues: Annotated[
        list[str],
        argument(
            "Disciplines, parameters after a colon: pie codel:target=10ms,ecn=true",
            "QUEUE...",
            among=partial(options.names_of, "aqm"),
        ),
    ],
    rate: Annotated[str, option("Rate of the bottleneck: 10mbit, 10 Mbit/s.")],
    rtt: Annotated[str, option("Base RTT of all flows: 100ms.")],
    flows: Annotated[int, option("Bulk TCP flows.", min=1)] = 1,
    tcp: Annotated[
        str, option("Their congestion control; sojourn list tcp.", among=partial(options.names_of, "tcp"))
    ] = "cubic",
    ecn: Annotated[bool, flag("Flows and queues use ECN.", "--ecn")] = False,
    buffer: Annotated[str, option("Limit of every queue: 1000 packets, 150 kB, 1 bdp.")] = "1000 packets",
    duration: Annotated[str, option("Duration of a run.")] = "30 s",
    warmup: Annotated[str, option("First part of a run that the statistics omit.")] = "0 s",
    repeat: Annotated[int, option("Runs per queue, each with its own seed.", min=1)] = 1,
    seed: Annotated[int, option("Seed of the first run.", min=0)] = 1,
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
