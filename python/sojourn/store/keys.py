"""The key that identifies the runs of a plan: equal keys mean equal runs, wherever and whenever they were made."""

from __future__ import annotations

import hashlib

from sojourn import _core
from sojourn.runs.backends import Backend


def plan_key(plan: _core.Plan, backend: Backend) -> str:
    """The key of all of a plan's runs in their order, and of their names.

    It covers everything that determines their results: the experiment with every default and trace, the seeds, the
    source of user-defined disciplines (but not of modules that it imports), the version of Sojourn, and the backend.
    """
    return hashlib.sha256("\n".join([_core.version, backend_key(backend), plan.hash]).encode()).hexdigest()


def backend_key(backend: Backend) -> str:
    """What a backend's results depend on besides the run: its options, and the release of its kernel."""
    if backend.name == "sim":
        return backend.name
    return f"{backend.name} {backend!r} {getattr(backend, 'release', '')}".rstrip()
