"""What tells a run from every other: the same key, the same run, wherever and whenever it was made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from sojourn import _core
from sojourn.backends import Backend


def run_key(spec: _core.RunSpec, backend: Backend) -> str:
    """The key of a run: of all that decides what it gives.

    That is its part of the experiment with every default and trace, its seed, the version of Sojourn, the backend, and
    the source of own disciplines (but not what that imports).
    """
    return _digest([*_place(backend), spec.hash])


def plan_key(plan: _core.Plan, backend: Backend) -> str:
    """The key of all of a plan's runs in their order, and of what they are called."""
    runs = (f"{spec.label}\n{run_key(spec, backend)}" for spec in plan)
    return _digest([plan.name, *runs])


def _place(backend: Backend) -> list[str]:
    # A backend without options of its own is told by its name.
    options = "" if backend.name == "sim" else repr(backend)
    return [_core.version, backend.name, options]


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()
