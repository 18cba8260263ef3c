"""A run as it goes on. ``feed``: its samples; ``server``: the page that shows them; ``panel``: a terminal's title."""
