"""The application: its commands, and how errors become messages and exit statuses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sojourn import _core, own
from sojourn.cli import (
    agree,
    compare,
    completion,
    doctor,
    evaluate,
    explore,
    export,
    kernel,
    listing,
    plot,
    query,
    replay,
    report,
    run,
    study,
    sweep,
    worker,
)
from sojourn.cli import status as status_
from sojourn.cli.outcome import DONE, FAILED, INTERRUPTED, WRONG_INPUT, Stopped, complain
from sojourn.notes import print_as_lines
from sojourn.storage import OutputError

app = typer.Typer(
    name="sojourn",
    help="A laboratory for active queue management.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("run")(run.command)
app.command("compare")(compare.command)
app.command("agree")(agree.command)
app.command("evaluate")(evaluate.command)
app.command("sweep")(sweep.command)
app.command("worker")(worker.command)
app.command("status")(status_.command)
app.command("query")(query.command)
app.command("plot")(plot.command)
app.command("explore")(explore.command)
app.command("replay")(replay.command)
app.command("report")(report.command)
app.command("export")(export.command)
app.command("list")(listing.command)
app.command("doctor")(doctor.command)
app.command("completion")(completion.command)
app.command(completion.HELPER, hidden=True)(completion.helper)
app.add_typer(kernel.app, name="kernel")
app.add_typer(study.app, name="study")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    load: Annotated[
        list[Path] | None,
        typer.Option("--load", metavar="FILE", help="First run a Python file that registers user-defined disciplines."),
    ] = None,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"sojourn {_core.version}")
        raise typer.Exit
    for file in load or []:
        if not own.load(file):
            print(f'note: --load {file}: registers no discipline; a class needs @sj.aqm("NAME")', file=sys.stderr)
    if context.invoked_subcommand is None:
        print(context.get_help())


def status() -> int:
    """Runs the command line and returns its exit status; a KeyboardInterrupt passes through."""
    print_as_lines()
    try:
        code: object = app(standalone_mode=False, prog_name="sojourn")
        sys.stdout.flush()
        if code == INTERRUPTED:
            # typer turns a KeyboardInterrupt into this code.
            raise KeyboardInterrupt
        return code if isinstance(code, int) else DONE
    except Stopped as stopped:
        complain(f"sojourn: {stopped.message}")
        return stopped.status
    except typer.TyperException as error:
        complain(f"sojourn: {_told(error)}")
        return WRONG_INPUT
    except (_core.ExperimentError, OutputError) as error:
        # The message already names the file and line, or the option.
        complain(str(error))
        return WRONG_INPUT
    except _core.RunError as error:
        complain(f"sojourn: {error}")
        return FAILED
    except MemoryError:
        complain("sojourn: there is not enough memory")
        return FAILED
    except BrokenPipeError:
        # The reader of our output has exited, as in `sojourn list aqm | head -1`. Do not flush again at exit.
        sys.stdout = None
        return FAILED
    except OSError as error:
        complain(f"sojourn: {error.filename or 'standard output'}: {error.strerror or error}")
        sys.stdout = None
        return FAILED


def _told(error: typer.TyperException) -> str:
    """The message of a usage error; adds the given value if the message lacks it."""
    # The validator puts the name of its exception first.
    message = error.format_message().replace("Value error, ", "", 1)
    details = getattr(error.__cause__, "errors", None)
    found = details() if callable(details) else []
    if not found or repr(str(found[0]["input"])) in message:
        return message
    return f"{message}; got {str(found[0]['input'])!r}"
