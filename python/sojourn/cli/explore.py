"""``sojourn explore``: a store as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sojourn import _core
from sojourn.cli.options import StoreFolder
from sojourn.cli.outcome import complain
from sojourn.cli.output import write
from sojourn.cli.parameters import option
from sojourn.cli.plot import Where
from sojourn.page.explorer import page
from sojourn.store import Store
from sojourn.store.cells import Grid


def command(
    store: StoreFolder,
    out: Annotated[Path, option("The page: .html.", "FILE")],
    where: Where = None,
    metrics: Annotated[str | None, option("Columns of the store with commas; default: all figures.", "NAMES")] = None,
) -> None:
    """Write a store as one HTML file: pictures over any keys, filters, a table of the cells; it needs no network."""
    if out.suffix.lower() not in (".html", ".htm"):
        raise _core.ExperimentError(f'--out: got "{out}"; must end with .html')

    named = None if metrics is None else [name.strip() for name in metrics.split(",")]
    write(out, page(Grid(Store(store, say=complain), where), named).encode())
    print(out)
