"""Results as data. ``results``: runs and arms; ``registry``, ``metrics``: what is measured, declared in Rust.

``statistics``, ``intervals``, ``ranks``, ``pairs``: medians with their intervals, differences on the same seeds;
``series``, ``transmissions``: recorded tables; ``swept``: keys and values; ``columns``: the columns of a table of runs.
"""
