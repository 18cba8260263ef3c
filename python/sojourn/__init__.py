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

TYPE_CHECKING = False  # for type checkers, as that of ``typing``, which ``sojourn --version`` does not load
if TYPE_CHECKING:
    from sojourn._core import Ack as Ack
    from sojourn._core import Algorithm as Algorithm
    from sojourn._core import Delivery as Delivery
    from sojourn._core import ExperimentError as ExperimentError
    from sojourn._core import Packet as Packet
    from sojourn._core import Path as Path
    from sojourn._core import Queue as Queue
    from sojourn._core import RunError as RunError
    from sojourn._core import RunSpec as RunSpec
    from sojourn._core import Sample as Sample
    from sojourn._core import Window as Window
    from sojourn._core import version as __version__
    from sojourn.api import compare as compare
    from sojourn.api import run as run
    from sojourn.api import run_text as run_text
    from sojourn.export.weights import convert_weights as convert_weights
    from sojourn.frame.results import Arm as Arm
    from sojourn.frame.results import Results as Results
    from sojourn.frame.results import Run as Run
    from sojourn.runs.plan import plan as plan
    from sojourn.runs.replays import follow as follow
    from sojourn.runs.replays import replay as replay
    from sojourn.runs.session import Session as Session
    from sojourn.runs.user_aqm import aqm as aqm
    from sojourn.runs.user_aqm import congestion_control as congestion_control
    from sojourn.runs.user_aqm import register_aqm as register_aqm
    from sojourn.runs.user_aqm import register_congestion_control as register_congestion_control
    from sojourn.runs.user_aqm import unregister_aqm as unregister_aqm
    from sojourn.runs.user_aqm import unregister_congestion_control as unregister_congestion_control
    from sojourn.store.cells import Grid as Grid
    from sojourn.store.folder import load as load

_HOMES = {
    "_core": "Ack Algorithm Delivery ExperimentError Packet Path Queue RunError RunSpec Sample Window",
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
"""The names of each module."""
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
__all__ = [*_HOME_OF, "__version__"]


def __getattr__(name: str) -> object:
    """Loads a name on first use, so that the command line can handle a Ctrl-C before most modules are loaded."""
    own = name.strip("_") if name == "__version__" else name
    if name not in __all__:
        raise AttributeError(f"module 'sojourn' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(f"sojourn.{_HOME_OF.get(own, '_core')}"), own)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
