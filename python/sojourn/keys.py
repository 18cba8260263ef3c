"""What tells the runs of a plan from all others: the same key, the same runs, wherever and whenever they were made."""

from __future__ import annotations

import hashlib

from sojourn import _core
from sojourn.backends import Backend


def plan_key(plan: _core.Plan, backend: Backend) -> str:
    """The key of all of a plan's runs in their order, and of what they are called.

    It is made of all that decides what they give: the experiment with every default and trace, the seeds, the source of
    own disciplines (but not what that imports), the version of Sojourn, and the backend.
    """
    # A backend without options of its own is told by its name.
    options = "" if backend.name == "sim" else repr(backend)
    return hashlib.sha256("\n".join([_core.version, backend.name, options, plan.hash]).encode()).hexdigest()
