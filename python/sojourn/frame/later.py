"""Libraries that are loaded on first use, so that the command line starts sooner."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "ctypes", "duckdb", "futures", "multiprocessing", "np", "npt", "pa", "pc", "pq", "rich_console", "rich_progress",
]  # fmt: skip

if TYPE_CHECKING:
    import ctypes
    import multiprocessing
    from concurrent import futures

    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import rich.console as rich_console
    import rich.progress as rich_progress
else:

    class _Later:
        """Stands for a module; what was used of it is kept."""

        def __init__(self, name: str) -> None:
            self.__name = name  # mangled, so that no name of the module is hidden

        def __getattr__(self, attribute: str) -> object:
            found = getattr(import_module(self.__name), attribute)
            setattr(self, attribute, found)
            return found

    ctypes, futures, multiprocessing = map(_Later, ("ctypes", "concurrent.futures", "multiprocessing"))
    duckdb, np, npt = map(_Later, ("duckdb", "numpy", "numpy.typing"))
    pa, pc, pq = map(_Later, ("pyarrow", "pyarrow.compute", "pyarrow.parquet"))
    rich_console, rich_progress = map(_Later, ("rich.console", "rich.progress"))
