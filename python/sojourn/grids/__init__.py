"""Pictures of a store: metrics over the keys that its sweeps have.

``cells``: the runs of a store in cells. ``intervals``: medians of many cells. ``measure``: what a metric is called.
``pictures``: what can be drawn. ``explorer``: a page with all of it.
"""

from sojourn.grids.cells import Grid

__all__ = ["Grid"]
