"""A store as one page that opens from disk: pictures, filters and a table of its cells, without a network.

``page``: the file and its cells. Its script draws with Plotly, which the file contains.
"""

from sojourn.page.explorer.page import page

__all__ = ["page"]
