"""What people read. ``tables``, ``stations``, ``pairs``, ``flows``: results as sheets for terminal, Markdown and HTML.

``html``, ``experiment``: the page of ``sojourn report``; ``explorer``: a store as a page that opens from disk.
"""
