"""Modules that are loaded when something of theirs is first used: the command line starts sooner without them."""

from __future__ import annotations

from importlib import import_module


class Later:
    """Stands for a module until then."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        return getattr(import_module(self._name), attribute)
