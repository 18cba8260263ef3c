"""Figures. ``plots``: those of results; ``filenames``: their names; ``style``: their common look.

A mark is a file, whose class ``plots`` lists: ``distributions`` (and boxes, ellipses), ``bars`` (and lines over a key),
``timeseries``, ``air`` (Wi-Fi). ``grids``: those of a store's cells, in the ``panels`` that they share.
"""
