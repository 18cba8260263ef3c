"""Modules that are loaded on first use, so that the command line starts sooner."""

from __future__ import annotations

from importlib import import_module


class Later:
    """Stands for a module until its first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        return getattr(import_module(self._name), attribute)
