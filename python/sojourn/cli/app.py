"""The application: its commands, and what happens when one ends badly."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated, NoReturn

import typer

from sojourn import _core
from sojourn.cli import compare, doctor, listing, run, study
from sojourn.cli.outcome import FAILED, INTERRUPTED, WRONG_INPUT, Stopped, complain
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
app.command("list")(listing.command)
app.command("doctor")(doctor.command)
app.add_typer(study.app, name="study")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        print(f"sojourn {_core.version}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def main() -> NoReturn:
    """Runs the command line and exits with its status."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.exit(_status())


def _status() -> int:
    try:
        return app(standalone_mode=False, prog_name="sojourn") or 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except Stopped as stopped:
        complain(f"sojourn: {stopped.message}")
        return stopped.status
    except typer.TyperException as error:
        complain(f"sojourn: {error.format_message()}")
        return WRONG_INPUT
    except (_core.ExperimentError, OutputError) as error:
        # Names its place by itself: file and line, or the option.
        complain(str(error))
        return WRONG_INPUT
    except _core.RunError as error:
        complain(f"sojourn: {error}")
        return FAILED
    except BrokenPipeError:
        # Whoever read our output has gone, as in `sojourn list aqm | head -1`. Keep the interpreter from trying again.
        sys.stdout = None
        return FAILED
    except KeyboardInterrupt:
        complain("sojourn: interrupted")
        return INTERRUPTED


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
