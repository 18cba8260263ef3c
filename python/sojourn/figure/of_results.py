"""What the figures of an experiment's results share: the results, and the names of what is drawn."""

from __future__ import annotations

from sojourn.figure.style import Look, looks_of
from sojourn.frame.metrics import has_queue
from sojourn.frame.results import Results


class OfResults:
    """Results to be drawn. A mark is a class of its file, whose methods are figures; ``plots.Plots`` has them all."""

    def __init__(self, results: Results) -> None:
        self._results = results

    @property
    def _looks(self) -> list[Look]:
        """How its arms are drawn."""
        return looks_of([arm.discipline for arm in self._results.arms])

    def _checked_queue(self, queue: str) -> str:
        if not (isinstance(queue, str) and any(has_queue(run.summary, queue) for run in self._results.runs)):
            raise ValueError(f'queue: got "{queue}"; must be one of {", ".join(self._results.queues)}')
        return queue

    def _wifi_link(self, link: str | None) -> str:
        known = self._wifi_links()
        name = link if link is not None else next(iter(known), "")
        if name not in known:
            raise ValueError(f'link: got "{name}"; must be one that is Wi-Fi: {", ".join(known) or "there is none"}')
        return name

    def _wifi_links(self) -> list[str]:
        """The names of the links that are Wi-Fi."""
        links: dict[str, None] = {}
        for run in self._results.runs:
            links.update((name, None) for name, link in run.summary["links"].items() if "stations" in link)
        return list(links)
