"""Sojourn: a laboratory for active queue management.

>>> import sojourn as sj
>>> results = sj.compare("pfifo", "codel", rate="10 Mbit/s", rtt="40 ms", flows=2, duration="5 s")
>>> figure = results.plot.cdf()

- ``run``, ``run_text``, ``compare``: run an experiment and return its ``Results``
- ``Results``: runs, table, Arrow and pandas frames, figures; ``load`` reads saved results
- ``aqm``, ``register_aqm``, ``unregister_aqm``, ``Algorithm``: user-defined queue disciplines, in Python
- ``congestion_control``, ``register_congestion_control``, ``unregister_congestion_control``: the same for TCP
- ``plan``, ``RunSpec``: an experiment's runs as values, which can be pickled, sent, compared and run elsewhere
- ``Session``: one run, driven step by step
- ``Grid``: pictures of a store of runs
- ``Path``: a bottleneck around packets of your own, for tests of network protocols
- ``replay``, ``follow``: replay a recorded queue through a discipline
- ``convert_weights``: a learned network between NumPy's npz, the JSON of ``weights``, and ONNX
- ``ExperimentError``, ``RunError``: an error in the input; a failed run
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn._core import (
        Ack,
        Algorithm,
        Delivery,
        ExperimentError,
        Packet,
        Path,
        Queue,
        RunError,
        RunSpec,
        Sample,
        Window,
    )
    from sojourn._core import version as __version__
    from sojourn.api import compare, run, run_text
    from sojourn.export.weights import convert_weights
    from sojourn.frame.results import Arm, Results, Run
    from sojourn.runs.plan import plan
    from sojourn.runs.replays import follow, replay
    from sojourn.runs.session import Session
    from sojourn.runs.user_aqm import (
        aqm,
        congestion_control,
        register_aqm,
        register_congestion_control,
        unregister_aqm,
        unregister_congestion_control,
    )
    from sojourn.store.cells import Grid
    from sojourn.store.folder import load

__all__ = [
    "Ack",
    "Algorithm",
    "Arm",
    "Delivery",
    "ExperimentError",
    "Grid",
    "Packet",
    "Path",
    "Queue",
    "Results",
    "Run",
    "RunError",
    "RunSpec",
    "Sample",
    "Session",
    "Window",
    "__version__",
    "aqm",
    "compare",
    "congestion_control",
    "convert_weights",
    "follow",
    "load",
    "plan",
    "register_aqm",
    "register_congestion_control",
    "replay",
    "run",
    "run_text",
    "unregister_aqm",
    "unregister_congestion_control",
]

_HOMES = {
    "api": "compare run run_text",
    "export.weights": "convert_weights",
    "frame.results": "Arm Results Run",
    "runs.plan": "plan",
    "runs.replays": "follow replay",
    "runs.session": "Session",
    "runs.user_aqm": "aqm congestion_control register_aqm register_congestion_control "
    "unregister_aqm unregister_congestion_control",
    "store.cells": "Grid",
    "store.folder": "load",
}
"""The names that are not from ``_core``."""
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Loads a name on first use, so that the command line can handle a Ctrl-C before most modules are loaded."""
    own = name.strip("_") if name == "__version__" else name
    if name not in __all__:
        raise AttributeError(f"module 'sojourn' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"sojourn.{_HOME_OF.get(own, '_core')}"), own)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
