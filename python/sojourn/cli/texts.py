"""Texts on the command line. typer has pydantic check them, which takes longer to load than a short run to make."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command that takes texts as they are."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its parameters."""
        return first(super().get_params(ctx))


def first(parameters: list[Any]) -> list[Any]:
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
