"""Packages that an installation may lack: which of Sojourn's extras brings each."""

from __future__ import annotations

from importlib.util import find_spec

EXTRA_OF = {
    "matplotlib": "plots",
    "pyarrow": "store",
    "duckdb": "store",
    "jinja2": "report",
    "markupsafe": "report",
    "plotly": "explore",
    "SALib": "designs",
    "pandas": "pandas",
    "distributed": "dask",
    "gymnasium": "gym",
    "pettingzoo": "gym",
}
"""The extra by the package that is imported, as in pyproject.toml."""
BY_ITSELF = frozenset({"polars"})
"""Packages that no extra brings."""


def is_installed(package: str) -> bool:
    """Whether a package can be imported."""
    try:
        return find_spec(package) is not None
    except ValueError:
        # What a test, or a user, has put there in its place.
        return False


def needed(package: str, extra: str | None = None) -> str:
    """How to get a package, by default with its own extra: ``needs matplotlib: pip install 'sojourn[plots]'``."""
    if package in BY_ITSELF:
        return f"needs {package}: pip install {package}"
    return f"needs {package}: pip install 'sojourn[{extra or EXTRA_OF[package]}]'"


def missing(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error of an import with how to get the package, if an extra has it."""
    message = hint(error)
    return error if message is None else ModuleNotFoundError(message, name=error.name)


def hint(error: ModuleNotFoundError, extra: str | None = None) -> str | None:
    """How to get the package that an import did not find, as ``needed``; None if it is none of these."""
    package = (error.name or "").partition(".")[0]
    return needed(package, extra) if package in EXTRA_OF.keys() | BY_ITSELF else None
