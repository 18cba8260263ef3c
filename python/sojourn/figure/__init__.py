"""Figures. ``plots``: those of results; ``filenames``: their names; ``style``: their common look.

A mark or a layout is a file: ``distributions`` (distribution functions and boxes), ``bars``, ``tradeoff`` (ellipses),
``timeseries``, ``sweep`` (lines over a key), ``air`` and ``airtime`` (Wi-Fi). Of a store's cells: ``heatmap``,
``pareto``, ``smallmultiples``, ``surface``, ``sensitivity``, in the ``panels`` that they share.
"""
