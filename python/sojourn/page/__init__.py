"""What people read. ``tables``, ``pairs``, ``flows``: results as sheets for terminal, Markdown and HTML.

``html``: the page of ``sojourn report``; ``explorer``: a store as a page that opens from disk.
"""
