"""Draws a study's figures from its grids, as described in its recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import fill, wrap

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from msgspec import structs

from sojourn.figure.filenames import FORMATS
from sojourn.figure.style import Look, applied, figure, log_axis, save_all
from sojourn.files.storage import Staging
from sojourn.studies.figures.kinds import DRAW, Drawn, Subplot, shade
from sojourn.studies.figures.words import at, caption, part_shown, scheme_looks, with_unit
from sojourn.studies.grid import AxisValue, Grid
from sojourn.studies.measures import Measure
from sojourn.studies.published import PublishedValue, published_values
from sojourn.studies.recipe import FigureSpec, Study

__all__ = ["caption", "draw", "drawn_with_marks", "stage_figures"]

_COLUMN_IN, _PAGE_IN = 3.6, 7.16
_LETTERS_PER_IN = 17
_ROW_IN = 0.14
_LABEL_LETTERS = 24  # the number of letters as wide as a row is high


def stage_figures(
    staging: Staging,
    study: Study,
    grids: Mapping[str, Grid],
    formats: Sequence[str] = FORMATS,
    made_of: str | None = None,
) -> list[Path]:
    """Stages every figure whose experiment was run, in each format, unless it is there, ``made_of`` the same."""
    finals: dict[str, list[Path]] = {}
    lacking: list[tuple[str, Callable[[], Figure]]] = []
    for spec in study.figures:
        if not formats or spec.experiment not in grids:
            continue
        kept = [] if made_of is None else [staging.has(f"{spec.name}.{kind}", made_of) for kind in formats]
        known = [path for path in kept if path is not None]
        finals[spec.name] = known
        if len(known) < len(formats):
            lacking.append((spec.name, partial(draw, spec, study, grids)))
            for kind in set(FORMATS).difference(formats):
                if made_of is None or staging.has(f"{spec.name}.{kind}", made_of) is None:
                    staging.end(f"{spec.name}.{kind}")
    new = save_all(staging, lacking, formats, made_of)
    for index, (name, _) in enumerate(lacking):
        finals[name] = new[index * len(formats) : (index + 1) * len(formats)]
    return [path for paths in finals.values() for path in paths]


def draw(spec: FigureSpec, study: Study, grids: Mapping[str, Grid]) -> Figure:
    """One figure: a panel per value of its panel axis, all on the same scale, with the published values."""
    return drawn_with_marks(spec, study, grids)[0]


def drawn_with_marks(spec: FigureSpec, study: Study, grids: Mapping[str, Grid]) -> tuple[Figure, Drawn]:
    """A figure, and the published values in it."""
    shown = part_shown(spec, grids)
    panels: list[AxisValue | None] = [*shown.values(spec.panels)] if spec.panels else [None]
    schemes = [scheme for scheme in spec.schemes or shown.schemes if scheme in shown.schemes]
    looks = dict(zip(schemes, scheme_looks(schemes), strict=True))
    published = {metric: _published(spec, metric, study, grids) for metric in spec.metrics}
    done = Drawn()
    with applied():
        width_in = _PAGE_IN if len(panels) > 1 else _COLUMN_IN
        text = wrap(caption(spec, study, grids), int(_LETTERS_PER_IN * width_in))
        height_in = 1.0 + 1.75 * len(spec.metrics) + _ROW_IN * len(text)
        drawn = figure(width_in=width_in, height_in=height_in)
        drawn.suptitle("\n".join(text), fontsize=8, x=0.01, ha="left")
        # Distribution functions have their metrics on the horizontal axes, which then differ from row to row.
        is_flat = spec.kind in ("cdf", "spread")
        rows = drawn.subplots(
            len(spec.metrics), len(panels), sharex="row" if is_flat else "col", sharey="row", squeeze=False
        )
        for metric, row in zip(spec.metrics, rows, strict=True):
            for axes, value in zip(row, panels, strict=True):
                place = {} if value is None else {spec.panels: value}
                # Those that refer to a cell that the figure shows.
                here = [
                    mark
                    for mark in published[metric]
                    if any(mark.scheme == cell.label and mark.is_at(cell.set) for cell in shown.cells)
                ]
                DRAW[spec.kind](Subplot(axes, spec, metric, shown, place, looks, here, done))
                if value is not None and metric == spec.metric:
                    axes.set_title(at(spec.panels, value))
                if metric != spec.metrics[-1] and not is_flat:
                    axes.set_xlabel("")
            _label(spec, metric, row, shown)
        done.finish()
        handles = _handles(spec, study, shown, looks, done)
        # As many columns as the names leave room for.
        longest = max(len(str(handle.get_label())) for handle in handles)
        columns = max(1, min(len(handles), int(width_in / (0.45 + 0.065 * longest))))
        drawn.legend(handles=handles, loc="outside lower center", ncols=columns)
        return drawn, done


def _published(spec: FigureSpec, metric: str, study: Study, grids: Mapping[str, Grid]) -> list[PublishedValue]:
    """The published values of a metric, and of other metrics of the same quantity."""
    drawn = study.measures[metric]
    alike = {name for name, one in study.measures.items() if name == metric or _says_of(spec, drawn, one)}
    further = {*spec.published, *([spec.x] if spec.kind == "spread" else [])} if metric == spec.metric else set()
    shift = partial(_shifted, drawn, study, grids[spec.experiment])
    return [
        *map(shift, published_values(study, grids, spec.experiment, alike)),
        *published_values(study, grids, spec.experiment, further - alike),
    ]


def _says_of(spec: FigureSpec, drawn: Measure, other: Measure) -> bool:
    """True if another metric is the drawn one except for the values added to it or, for a series, its time."""
    if spec.kind == "series":
        other = structs.replace(other, from_s=drawn.from_s, to_s=drawn.to_s)
    elif other.at_least is not None:
        return False
    return (drawn.source, drawn.scale) == (other.source, other.scale) and drawn.is_of_part_of(other)


def _shifted(drawn: Measure, study: Study, grid: Grid, mark: PublishedValue) -> PublishedValue:
    """A mark of such a metric, shifted to the figure: a delay of 5 ms is an RTT of 105 ms."""
    if study.measures[mark.metric].at_least is not None:
        return mark
    place = {**grid.constants, **mark.places[0]}
    shift = drawn.offset(place) - study.measures[mark.metric].offset(place)
    return replace(mark, low=mark.low + shift, high=mark.high + shift)


def _label(spec: FigureSpec, metric: str, row: list[Axes], grid: Grid) -> None:
    """Labels a row's axes and sets their limits."""
    text = (spec.label if metric == spec.metric else "") or with_unit(grid.measures[metric])
    if spec.kind == "packets":
        return
    if spec.kind == "cdf":
        row[0].set_ylabel("share of runs" if spec.of_runs else "share")
        for axes in row:
            axes.set_xlabel(text)
        return
    row[0].set_ylabel(fill(text, _LABEL_LETTERS))
    if spec.kind in ("box", "bars") and spec.log and metric == spec.metric:
        log_axis(row[0], "y")
    elif spec.from_zero and spec.kind in ("box", "series", "bars") and not (spec.log and metric == spec.metric):
        row[0].set_ylim(bottom=0)


def _handles(spec: FigureSpec, study: Study, grid: Grid, looks: Mapping[str, Look], done: Drawn) -> list[Artist]:
    handles: list[Artist] = [
        Patch(facecolor=look.color + "55", edgecolor=look.color, label=study.labels.get(scheme, scheme))
        for scheme, look in looks.items()
    ]
    if spec.kind == "bars":
        names = [at(spec.x, value) for value in grid.values(spec.x)] if spec.x else []
        names = names or [grid.measures[metric].label or "" for metric in (spec.metric, *spec.beside) if spec.beside]
        for index, name in enumerate(names):
            grey = f"{1 - shade(index, len(names)):.2f}"
            handles.append(Patch(facecolor=grey, edgecolor="black", label=name))
    return [*handles, *done.handles()]
