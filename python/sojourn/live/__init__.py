"""A run as it goes on, for whoever watches: its samples, and a page that a browser shows them in."""

from sojourn.live.feed import Feed
from sojourn.live.server import served

__all__ = ["Feed", "served"]
