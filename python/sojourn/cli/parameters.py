"""Arguments and options of commands, as typer takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import typer

Names = Iterable[str] | Callable[[], Iterable[str]]
"""Names that complete a value."""


def argument(help: str, metavar: str | None = None, among: Names = (), **more: Any) -> Any:
    """An argument."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=_completion(among), **more)


def option(help: str, metavar: str | None = None, *names: str, among: Names = (), **more: Any) -> Any:
    """An option with a value; by default it is named after its parameter."""
    return typer.Option(*names, metavar=metavar, help=help, autocompletion=_completion(among), **more)


def _completion(among: Names) -> Callable[[], list[str]] | None:
    return (lambda: list(among() if callable(among) else among)) if among else None


def flag(help: str, name: str) -> Any:
    """An option without a value."""
    return typer.Option(name, help=help)


def folder(help: str, *names: str) -> Any:
    """An option whose value is a directory."""
    return option(help, "DIR", *names, parser=out_directory)


def out_directory(given: str) -> Path:
    """The value of ``--out``. An empty one raises ValueError, since it is probably an unset variable."""
    if not given.strip():
        raise ValueError("must be the name of a directory")
    if not is_text(given):
        raise ValueError("must be the name of a directory in UTF-8")
    return Path(given)


def is_text(given: str) -> bool:
    """True if the text can be encoded as UTF-8; undecodable bytes of the command line cannot."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True
