"""Figures. ``plots``: those of results; ``filenames``: their names; ``style``: their common look.

A mark or a layout is a file: ``distributions`` (distribution functions and boxes), ``bars`` (and lines over a
key), ``tradeoff`` (ellipses), ``timeseries``, ``air`` (Wi-Fi). ``grids``: those of
a store's cells, in the ``panels`` that they share.
"""
