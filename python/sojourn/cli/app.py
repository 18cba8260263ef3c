"""The application: its commands, and how errors become messages and exit statuses."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from sojourn import _core
from sojourn.cli.outcome import DONE, FAILED, INTERRUPTED, WRONG_INPUT, Stopped, complain
from sojourn.cli.parameters import flag, option
from sojourn.files import extras
from sojourn.files.manifest import OutputError
from sojourn.frame.notes import print_as_lines
from sojourn.runs import user_aqm

COMMANDS = (
    "run", "compare", "agree", "shell", "serve", "advise", "evaluate", "sweep", "worker", "status", "query", "plot",
    "explore", "replay", "report", "export", "list", "doctor", "completion", "kernel", "link", "study",
)  # fmt: skip
"""The commands. The module of the same name has a function ``command``, or ``app`` if it has several."""
MODULES = {"list": "names"}
"""The modules of other names."""
_OPTIONS: dict[str, Any] = {
    "add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False,
}  # fmt: skip


def _load(name: str) -> Any:
    """A command, from its module; one that needs a package is listed all the same, and tells when it is called."""
    own = typer.Typer(**_OPTIONS)
    try:
        module = import_module(f"sojourn.cli.{MODULES.get(name, name)}")
    except ModuleNotFoundError as error:
        # An extra may be called as the command that needs all of it.
        message = extras.hint(error, name if name in extras.EXTRA_OF.values() else None)
        if message is None:
            raise
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        own.command(name, help=message, context_settings=anything)(lambda: _tell(message))
    else:
        if hasattr(module, "app"):
            own = module.app
        else:
            own.command(name, cls=_Command)(module.command)
    command = get_command(own)
    command.name = name
    return command


def _tell(message: str) -> None:
    raise Stopped(WRONG_INPUT, message)


class _Command(TyperCommand):
    """A command that takes texts as they are: typer has pydantic check them, which takes longer to load than a run."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _first(super().get_params(ctx))


def _first(parameters: list[Any]) -> list[Any]:
    """These parameters; typer asks pydantic only about values that are not what they must be already."""
    for parameter in parameters:
        if not isinstance(parameter.get_runtime_param, _TextsFirst):
            parameter.get_runtime_param = _TextsFirst(parameter)
    return parameters


class _TextsFirst:
    """What typer asks for a parameter's value."""

    def __init__(self, parameter: Any) -> None:
        self._typers = parameter.get_runtime_param

    def __call__(self) -> _TextsFirst:
        return self

    def coerce(self, value: Any, *, param: Any, ctx: Any) -> Any:
        """The value of the option; what is not accepted is left to typer, which has the words for it."""
        kind, parser = param.type_descriptor.annotation, param.type_descriptor.parameter_info.parser
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        if parser is not None and isinstance(value, str) and not several:
            try:
                return parser(value)
            except ValueError:
                pass
        elif parser is None and type(value) is kind:
            return value
        elif parser is None and kind == list[str] and several and isinstance(value, list | tuple):
            return list(value)
        return self._typers().coerce(value, param=param, ctx=ctx)


class _Group(TyperGroup):
    """The commands. The module of one is loaded when it is first used."""

    commands: dict[str, Any]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = dict.fromkeys(COMMANDS)

    def get_params(self, ctx: Any) -> list[Any]:
        return _first(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load(cmd_name)
        return self.commands.get(cmd_name)


app = typer.Typer(name="sojourn", help="A laboratory for active queue management.", cls=_Group, **_OPTIONS)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    load: Annotated[
        list[Path] | None,
        option("First run a Python file that registers user-defined algorithms.", "FILE"),
    ] = None,
    version: Annotated[bool, flag("Print the version and exit.", "--version")] = False,
) -> None:
    if version:
        print(f"sojourn {_core.version}")
        raise typer.Exit
    for file in load or []:
        if not user_aqm.load(file):
            print(f"note: --load {file}: registers nothing; see sj.aqm and sj.congestion_control", file=sys.stderr)
    if context.invoked_subcommand is None:
        print(context.get_help())


def status() -> int:
    """Runs the command line and returns its exit status; a KeyboardInterrupt passes through."""
    print_as_lines()
    completion_init()
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
        # The validator puts the name of its exception first, and may leave out the given value.
        text = error.format_message().replace("Value error, ", "", 1)
        if getattr(error, "option_name", None) == "--load":
            text = "--load stands before the command: sojourn --load FILE COMMAND"
        details = getattr(error.__cause__, "errors", None)
        given = repr(str(details()[0]["input"])) if callable(details) and details() else ""
        complain(f"sojourn: {text}{f'; got {given}' if given not in text else ''}")
        return WRONG_INPUT
    except (_core.ExperimentError, OutputError) as error:
        # The message already names the file and line, or the option.
        complain(str(error))
        return WRONG_INPUT
    except _core.RunError as error:
        complain(f"sojourn: {error}")
        return FAILED
    except ModuleNotFoundError as error:
        if (message := extras.hint(error)) is None:
            raise
        complain(f"sojourn: {message}")
        return WRONG_INPUT
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
