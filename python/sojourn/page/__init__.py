"""What people read. ``sheet``: a table, and its renderers; ``tables``, ``pairs``, ``flows``: results as sheets.

``html``: the page of ``sojourn report``; ``explorer``: a store as a page that opens from disk.
"""
