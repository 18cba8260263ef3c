"""A run as it goes on. ``feed``: its samples, on a terminal too; ``server``: the page that shows them."""
