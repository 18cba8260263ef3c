"""The key that identifies the runs of a plan: equal keys mean equal runs, wherever and whenever they were made."""

from __future__ import annotations

import hashlib

from sojourn import _core
from sojourn.backends import Backend


def plan_key(plan: _core.Plan, backend: Backend) -> str:
    """The key of all of a plan's runs in their order, and of their names.

    It covers everything that determines their results: the experiment with every default and trace, the seeds, the
    source of user-defined disciplines (but not of modules that it imports), the version of Sojourn, and the backend.
    """
    # A backend without options is identified by its name.
    options = "" if backend.name == "sim" else repr(backend)
    return hashlib.sha256("\n".join([_core.version, backend.name, options, plan.hash]).encode()).hexdigest()
