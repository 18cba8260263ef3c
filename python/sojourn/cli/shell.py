"""``sojourn shell``: a program with its network behind a described link, over real packets."""

from __future__ import annotations

import contextlib
import json
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sojourn import _core
from sojourn.cli import mahimahi
from sojourn.cli.options import BY_DEFAULT, Figures, Out, Set, formats_of, names_of, overrides
from sojourn.cli.outcome import FAILED, Stopped, announce_notes, announce_unkept, complain
from sojourn.cli.output import show, width
from sojourn.cli.parameters import argument, flag, option
from sojourn.cli.run import tables_of
from sojourn.files import bounded
from sojourn.frame.results import Results, Run
from sojourn.frame.swept import as_file
from sojourn.linux import Datapath
from sojourn.linux.programs import LinuxError
from sojourn.linux.shell import Shell
from sojourn.live.feed import StatusLine
from sojourn.runs.backends import backend_of
from sojourn.runs.execution import as_run
from sojourn.runs.plan import naming_options, overrides_for_queues
from sojourn.store.runner import AS_THEY_ARE, Finished
from sojourn.store.saving import Unsaved, run_into

Queue = Annotated[str | None, option("Which [[queue]] of FILE; default: the first.", "LABEL")]

Between = Annotated[
    str | None,
    option(
        "Carry what passes these two interfaces, as root; the link leads down from the first to the second.", "FROM,TO"
    ),
]

Outside = Annotated[
    bool | None,
    flag(
        "Let the program reach the outside, by pasta; default: if it is installed and there is no --server.",
        "--outside/--no-outside",
    ),
]


def command(
    words: Annotated[
        list[str],
        argument(
            "The experiment, TOML, and the program with its arguments; or -- and a command of mahimahi.",
            "[FILE] -- COMMAND...",
        ),
    ],
    rate: Annotated[str | None, option("Without FILE: the rate of the link, down.")] = None,
    up: Annotated[str | None, option("Without FILE: its rate up; default: no queue that way.")] = None,
    delay: Annotated[
        str | None, option("Without FILE: propagation delay of the link, each way; default: none.")
    ] = None,
    aqm: Annotated[
        str | None,
        option(
            "Without FILE: its discipline, as codel or codel:target=10ms; default: pfifo.",
            among=partial(names_of, "aqm"),
        ),
    ] = None,
    queue: Queue = None,
    server: Annotated[
        list[str] | None,
        option(
            "Start a server at the other end first, where its address is $SOJOURN_SERVER; may be repeated.", "COMMAND"
        ),
    ] = None,
    between: Between = None,
    outside: Outside = None,
    panel: Annotated[
        bool, flag("Show what the queues do, each second, in the title of the terminal.", "--panel")
    ] = False,
    set: Set = None,
    out: Out = None,
    figures: Figures = BY_DEFAULT,
) -> None:
    """Run a program with its network behind a link, and show what the queue did.

    The program is at the end to which the link leads down: downloads pass the queue of FILE's [link]. Its terminal,
    signals and exit status are passed on; the tables go to standard error. FILE's traffic, if it has any, is not sent.
    """
    formats = formats_of(figures)
    line = mahimahi.read(words) if rate is None and mahimahi.is_given(words) else None
    plan, program = prepared(words, line=line, rate=rate, up=up, delay=delay, aqm=aqm, queue=queue, set=set)
    backend_of(Datapath.name)  # Refuses a system that is not Linux.
    shell = Shell(program, server or (), interfaces(between, server, outside), outside=outside)
    if panel or (line is not None and line.metered):
        shell.feed = StatusLine([queue["name"] for queue in json.loads(plan[0].parts_json)["queues"]])
    shell.check(plan)
    if line is not None:
        line.check_logs()
    announce_notes(shell, plan)
    if out is None:
        announce_unkept(plan)

    def runner(finished: Finished = AS_THEY_ARE) -> tuple[Results, BaseException | None]:
        with shell.feed.shown() if isinstance(shell.feed, StatusLine) else contextlib.nullcontext():
            run = as_run(shell.run(plan[0], _core.Monitor()))
        return results_of(plan, shell.name, finished.keep(run)), None

    if out is None:
        results, _ = runner()
    else:
        try:
            results = run_into(out, plan, shell, runner, resume=False, figures=formats, say=complain).results
        except Unsaved as unsaved:
            raise Stopped(FAILED, f"{out}: {unsaved.cause}") from None
        except (_core.RunError, LinuxError):
            if (Path(out) / "summary.json").exists():
                complain(f"note: {out} has the results of an earlier run; of this one nothing was written")
            raise
    show_aside(results)
    if line is not None:
        try:
            line.write_logs(results)
        except OSError as error:
            raise Stopped(FAILED, f"{error.filename}: {error.strerror}") from None
    raise typer.Exit(shell.status or 0)


def prepared(
    words: list[str],
    *,
    line: mahimahi.Line | None = None,
    rate: str | None = None,
    up: str | None = None,
    delay: str | None = None,
    aqm: str | None = None,
    queue: str | None,
    set: list[str] | None,
) -> tuple[_core.Plan, list[str]]:
    """The link of a program, and the program. Raises ExperimentError if there is a mistake in one of them."""
    if rate is None:
        for option, given, instead in (
            ("--up", up, "up in its [link]"),
            ("--delay", delay, "delay in its [link]"),
            ("--aqm", aqm, "[[queue]], of which --queue chooses one"),
        ):
            if given is not None:
                raise _core.ExperimentError(f"{option}: needs --rate; a FILE has {instead}")
    if line is not None:
        return line.plan(words[0], overrides(set), queue), line.program
    if rate is not None and (mahimahi.is_given(words) or Path(words[0]).suffix == ".toml"):
        raise _core.ExperimentError(f"--rate: cannot be given with {words[0]}, which describes the link itself")
    program = words[rate is None :]
    if not program:
        raise _core.ExperimentError(
            f"shell: got only {words[0]}; must be a link and a program: FILE -- COMMAND, or --rate RATE -- COMMAND"
        )
    replaced = overrides(set)
    if rate is not None:
        aqm = aqm or "pfifo"
        link = {"rate": rate, "delay": delay or "0 ms"} | ({"up": {"rate": up}} if up is not None else {})
        whole = {
            "experiment": {"duration": "1 s"},
            "link": link,
            "queue": [{"aqm": aqm.partition(":")[0]}],
        }
        of_queue = overrides_for_queues([aqm], "shell")
        made_of = {"link.rate": "--rate", "link.delay": "--delay", "link.up.rate": "--up"}
        with naming_options("shell", [aqm], made_of):
            _core.Plan.for_programs(as_file(whole), "shell", of_queue, None)
        return _core.Plan.for_programs(as_file(whole), "shell", [*of_queue, *replaced], queue), program
    try:
        text = bounded.read_text(Path(words[0]), bounded.LARGEST_TEXT)
    except OSError as error:
        raise _core.ExperimentError(f"{words[0]}: cannot be read: {error.strerror}") from None
    # A duration for a file without one: the program decides how long the run is.
    with contextlib.suppress(tomllib.TOMLDecodeError):
        if "experiment" not in tomllib.loads(text):
            replaced = [("experiment.duration", "1 s"), *replaced]
    return _core.Plan.for_programs(text, words[0], replaced, queue), program


def interfaces(
    between: str | None, server: list[str] | None = None, outside: bool | None = None
) -> tuple[str, str] | None:
    """The two interfaces of ``--between``, beside which no option of a path of its own is accepted."""
    if between is None:
        return None
    names = [name.strip() for name in between.split(",")]
    if len(names) != 2 or not all(names) or names[0] == names[1]:
        raise _core.ExperimentError(f'--between: got "{between}"; must be two interfaces, as eth1,eth2')
    if server:
        raise _core.ExperimentError(
            "--server: cannot be given with --between: the hosts behind the interfaces have servers"
        )
    if outside is not None:
        raise _core.ExperimentError("--outside: cannot be given with --between: programs have the machine's network")
    return names[0], names[1]


def results_of(plan: _core.Plan, backend: str, run: Run) -> Results:
    """The only run that was made of a plan, as results."""
    return Results.of([run], experiment=plan.name, backend=backend, resolved_json=plan.resolved_json())


def show_aside(results: Results) -> None:
    """Prints the tables and what the user should know on standard error."""
    sys.stdout.flush()
    run = results.runs[0].summary
    if run["flows"]:
        for table in tables_of(results, width(aside=True), short=False)[0]:
            show(table, aside=True)
    else:
        complain("no packet has come")
    late = run.get("lateness_ms")
    if late is not None:
        complain(f"packets were delivered late by {late['p50']:.3f} ms (median), {late['p99']:.3f} ms (99 %)")
    for note in run.get("notes", []):
        complain(f"note: {note}")
    for fault in run.get("invalid", []):
        complain(f"invalid: {fault}")
