"""The common style of all figures: legible in print, distinguishable without colour."""

from __future__ import annotations

import hashlib
import io
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import cycle, islice, pairwise
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, NamedTuple

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import LayoutEngine, PlaceHolderLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn.figure.filenames import FORMATS, WIDTHS_IN
from sojourn.figure.names import differing
from sojourn.files.storage import Staging
from sojourn.files.typed import must_be
from sojourn.frame.groups import above_capacity
from sojourn.frame.metrics import Metric, has_queue
from sojourn.frame.notes import Note
from sojourn.frame.results import Results
from sojourn.frame.statistics import FloatArray

_UNDATED: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

# Okabe and Ito's palette for colour-blind readers, without its yellow; then darker and duller colours.
_BLUE, _VERMILION, _GREEN, _PINK, _SKY, _ORANGE = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00"
_BLACK, _WINE, _OLIVE, _INDIGO, _GREY, _BROWN = "#000000", "#882255", "#8A8A2B", "#332288", "#8C8C8C", "#8C510A"
COLORS = (_BLUE, _VERMILION, _GREEN, _PINK, _SKY, _ORANGE, _BLACK, _WINE, _OLIVE, _INDIGO, _GREY, _BROWN)
"""All colours, in order of preference."""
COLOR_OF = {
    **dict.fromkeys(("pfifo", "pfifo_head_drop"), _BLACK),
    "bfifo": _GREY,
    "pfifo_fast": _BROWN,
    **dict.fromkeys(("red", "choke"), _WINE),
    **dict.fromkeys(("ared", "blue"), _PINK),
    **dict.fromkeys(("pie", "docsis_pie"), _VERMILION),
    **dict.fromkeys(("madpie", "sfq_madpie"), _INDIGO),
    **dict.fromkeys(("codel", "cobalt"), _BLUE),
    **dict.fromkeys(("fq_codel", "dualpi2"), _SKY),
    **dict.fromkeys(("fq_pie", "sfq_pie"), _ORANGE),
    **dict.fromkeys(("cake", "sfb"), _GREEN),
    **dict.fromkeys(("sfq", "sfq_red", "sfq_ared", "pi2"), _OLIVE),
    **dict.fromkeys(("fq", "fq_nocodel", "hhf"), _GREY),
}
"""The colour of a discipline in every figure, unless another arm of the figure has it."""
Dashes = str | tuple[int, tuple[int, ...]]
DASHES: tuple[Dashes, ...] = ("-", "--", "-.", ":", (0, (9, 3)), (0, (6, 2, 1, 2, 1, 2)))
_MARKERS = ("o", "s", "D", "^", "v", "P", "*", "X", "p", "h", "<", ">")
_PALEST = 0.6
"""How far the colour of the last of a discipline's many arms is lightened."""

Width = Literal["column", "page"]
TALLEST_IN = 8.6
"""Most of a figure with such a width: a page's text is 9.25 inches high, with the figure's caption."""
LOG_FROM = 8.0
"""Values that differ by more than this factor are drawn on a logarithmic axis, so that small ones remain visible."""

# Common fonts for Chinese, Japanese and Korean.
_CJK = (
    *(f"Noto Sans {name}" for name in ("CJK SC", "CJK JP", "CJK TC", "CJK KR", "SC", "JP", "TC", "KR")),
    *("Source Han Sans SC", "Source Han Sans", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Droid Sans Fallback"),
    *("IPAexGothic", "IPAGothic", "TakaoGothic", "NanumGothic", "AR PL UMing CN", "Unifont"),
    *("PingFang SC", "Hiragino Sans", "Hiragino Sans GB", "Heiti TC", "Apple SD Gothic Neo", "Arial Unicode MS"),
    *("Microsoft YaHei", "Yu Gothic", "Meiryo", "MS Gothic", "SimHei", "Malgun Gothic"),
)

_RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    # Ticks have plain numbers: no factor or offset stands above an axis, and no title has to make room for one.
    "axes.formatter.limits": (-15, 15),
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9,
    "axes.titley": 1.0,
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "font.size": 9,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "svg.hashsalt": "sojourn",
    # Letters are as wide at the resolution of a file as at that of the layout.
    "text.hinting": "none",
    # A label is text: its dollar signs do not enclose formulas.
    "text.parse_math": False,
}


# Size of a legend in this style: per row, per name without its letters, and per letter.
_ROW_IN, _NAME_IN, _LETTER_IN = 0.17, 0.45, 0.065
ABOVE = 12
"""Most names in a legend above the axes; a longer legend stands to their right."""


class Look(NamedTuple):
    """How one arm is drawn, the same in every figure."""

    color: str
    dashes: Dashes
    marker: str = "o"


def looks(count: int) -> list[Look]:
    """``count`` looks, distinguished by colour and by dashes."""
    return list(islice(map(Look, cycle(COLORS), cycle(DASHES), cycle(_MARKERS)), count))


def looks_of(disciplines: Sequence[str]) -> list[Look]:
    """The looks of arms by their disciplines, no two equal: colours of their own, or shades if there are too few."""
    distinct = list(dict.fromkeys(disciplines))
    colors = _own_colors(distinct)
    if len(disciplines) <= len(COLORS):
        free = [color for color in COLORS if color not in colors.values()]
        given = [colors.pop(name, "") or free.pop(0) for name in disciplines]
        return [look._replace(color=color) for look, color in zip(looks(len(given)), given, strict=True)]
    count = Counter(disciplines)
    rank = dict.fromkeys(distinct, 0)
    before = {name: [colors[other] for other in distinct[:at]].count(colors[name]) for at, name in enumerate(distinct)}
    found = []
    for name in disciplines:
        pale = _PALEST * rank[name] / max(1, count[name] - 1)
        own = before[name] + rank[name]
        parts = (int(colors[name][at : at + 2], 16) for at in (1, 3, 5))
        color = "#" + "".join(f"{round(part + (255 - part) * pale):02X}" for part in parts)
        look = Look(color, DASHES[own % len(DASHES)], _MARKERS[own % len(_MARKERS)])
        found.append(look)
        rank[name] += 1
    return found


def _own_colors(disciplines: Sequence[str]) -> dict[str, str]:
    """A colour for each discipline; different ones while there are enough."""
    colors: dict[str, str] = {}
    for name in disciplines:
        if name in COLOR_OF and COLOR_OF[name] not in colors.values():
            colors[name] = COLOR_OF[name]
    free = [color for color in COLORS if color not in colors.values()]
    others = cycle(COLORS)
    for name in disciplines:
        if name not in colors:
            colors[name] = free.pop(0) if free else next(others)
    return colors


@lru_cache(maxsize=1)
def _families() -> tuple[str, ...]:
    """The fonts: matplotlib's own and, for characters that it lacks, the first installed one of ``_CJK``."""
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ("DejaVu Sans", *(name for name in _CJK if name in installed))[:2]


@lru_cache(maxsize=1)
def drawing_code() -> str:
    """A hash of what makes a figure besides its data: this package's code, the libraries, settings and fonts."""
    package = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        found.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    settings = {key: value for key, value in matplotlib.rcParams.items() if not key.startswith("backend")}
    found.update(f"{matplotlib.__version__} {np.__version__} {_families()} {settings}".encode())
    return found.hexdigest()


@contextmanager
def applied() -> Iterator[None]:
    """The common style, for everything drawn or saved in the context."""
    with matplotlib.rc_context({**_RC, "font.family": list(_families())}), _notes_for_warnings():
        yield


_NOTES = {
    "missing from font": "no installed font has some characters of the labels; for Chinese, Japanese and Korean "
    "install one such as Noto Sans CJK",
    "constrained_layout not applied": "the labels of a figure leave no room for its axes; shorter ones are needed",
}
"""What to tell the user instead of matplotlib's warnings, which occur once per character or figure."""


@contextmanager
def _notes_for_warnings() -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught:
        notes = [note for text, note in _NOTES.items() if text in str(one.message)]
        if notes:
            _tell_once(notes[0])
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@lru_cache(maxsize=len(_NOTES))
def _tell_once(note: str) -> None:
    """Prints a note once per process."""
    warnings.warn(f"figures: {note}", Note, stacklevel=4)


class StyledFigure(Figure):
    """A figure that keeps the style when it is saved, and that a notebook displays."""

    is_fixed = False
    """True if its width is that of a column or a page."""

    def get_layout_engine(self) -> LayoutEngine | None:
        """Like matplotlib's, but None once the layout is settled: saving would draw it once more to arrange it."""
        engine = super().get_layout_engine()
        return None if isinstance(engine, PlaceHolderLayoutEngine) else engine

    def savefig(self, fname: Any, **options: Any) -> None:
        """Like matplotlib's, but without a date, so that equal figures produce equal bytes."""
        kind = options.get("format") or Path(str(fname)).suffix.removeprefix(".") or "png"
        engine = self.get_layout_engine()
        # Without a layout engine of its own, matplotlib would give the figure the style's again.
        arranged = matplotlib.rc_context({"figure.constrained_layout.use": False})
        with applied():
            settle(self)
            with arranged:
                super().savefig(fname, **{"metadata": _UNDATED.get(kind), **options})
        if engine is not None:
            self.set_layout_engine(engine)  # for what is drawn into it later

    def _repr_png_(self) -> bytes:
        return content(self, "png")


def content(drawn: Figure, kind: str) -> bytes:
    """The bytes of a file with a figure: ``png``, ``svg`` or ``pdf``."""
    buffer = io.BytesIO()
    drawn.savefig(buffer, format=kind)
    return buffer.getvalue()


def figure(width_in: float = 5.2, height_in: float = 3.4, *, width: Width | None = None, rows: int = 1) -> Figure:
    """An empty figure for so many rows of axes; ``width`` takes precedence over ``width_in``."""
    if width is None:
        return StyledFigure(figsize=(width_in, height_in))
    must_be(width, WIDTHS_IN, "width")
    fixed_in = WIDTHS_IN[width]
    drawn = StyledFigure(figsize=(fixed_in, max(2.3, min(height_in, fixed_in * 0.66 if rows == 1 else TALLEST_IN))))
    drawn.is_fixed = True
    return drawn


def multiples(drawn: Figure, count: int, columns: int, *, sharex: bool = True, sharey: bool) -> list[Axes]:
    """Axes in rows of so many columns; the last of each column has the labels of a common horizontal axis."""
    found = drawn.subplots(math.ceil(count / columns), columns, squeeze=False, sharex=sharex, sharey=sharey).ravel()
    for axes in found[count:]:
        axes.set_visible(False)
    for axes in found[max(0, count - columns) : count] if sharex else ():
        axes.xaxis.set_tick_params(labelbottom=True)
    return list(found[:count])


def width_for(arms: int) -> float:
    """The width in inches of a figure with a position per arm."""
    return max(4.2, min(12.0, 1.4 + 0.65 * arms))


def name_y(axes: Axes, text: str) -> None:
    """Labels the vertical axis, in several lines if one would be longer than the height of the figure."""
    height_in = axes.get_figure(root=True).get_size_inches()[1]  # type: ignore[union-attr]
    axes.set_ylabel(wrapped(text, height_in - 0.6))


def title(axes: Axes, text: str, width_in: float) -> None:
    """A title over axes in a panel of this width, in several lines if one would be wider."""
    axes.set_title(wrapped(text, width_in - 0.5), loc="left", fontsize=9)


def wrapped(text: str, room_in: float) -> str:
    """A text in lines that fit into this width."""
    return "\n".join(fill(line, max(12, int(room_in / 0.075))) for line in text.splitlines())


def legend(drawn: Figure, axes: Axes) -> None:
    """A legend above the axes, by row, or to their right if there are many names; the figure grows accordingly."""
    handles, names = axes.get_legend_handles_labels()
    if not names:
        return
    width_in, height_in = drawn.get_size_inches()
    is_fixed = getattr(drawn, "is_fixed", False)
    room = max(12, int((width_in - _NAME_IN) / _LETTER_IN))
    if max(map(len, names)) > room or (is_fixed and len(names) > ABOVE):
        names = [fill(name, room) for name in differing(names)]
    name_in = _NAME_IN + _LETTER_IN * max(len(line) for name in names for line in name.split("\n"))
    if len(names) > ABOVE and not is_fixed:
        columns = math.ceil(len(names) / 40)
        drawn.set_size_inches(width_in + columns * name_in, max(height_in, _ROW_IN * len(names) / columns + 0.3))
        drawn.legend(handles, names, loc="outside right upper", ncols=columns)
        return
    columns = max(1, min(4, len(names), int(width_in / name_in)))
    lines = [name.count("\n") + 1 for name in names]
    rows = [max(lines[first : first + columns]) for first in range(0, len(names), columns)]
    drawn.set_size_inches(width_in, height_in + _ROW_IN * (sum(rows) - 1))
    # matplotlib fills a legend column by column.
    order = [index for column in range(columns) for index in range(column, len(names), columns)]
    drawn.legend(
        [handles[index] for index in order],
        [names[index] for index in order],
        loc="outside upper center",
        ncols=columns,
    )


def draw_line(
    axes: Axes,
    x: FloatArray,
    ends: Sequence[FloatArray],
    look: Look,
    label: str,
    *,
    band: bool,
    size: float = 0.0,
    joined: bool = True,
) -> None:
    """A line, with marks of a size, between its lower and its upper end, which are drawn as a band.

    Unless ``joined``, where the places have no order, marks with bars.
    """
    low, middle, high = ends
    if not joined:
        reach = [middle - low, high - middle] if band else None
        axes.errorbar(x, middle, reach, color=look.color, fmt=look.marker, markersize=size, capsize=3, label=label)
        return
    marks: dict[str, Any] = {"marker": look.marker, "markersize": size} if size else {}
    axes.plot(x, middle, color=look.color, linestyle=look.dashes, label=label, **marks)
    if band:
        axes.fill_between(x, low, high, color=look.color, alpha=0.15, linewidth=0)


def note(axes: Axes, *parts: str) -> None:
    """A line above the axes that explains the marks; empty parts are omitted."""
    text = "; ".join(part for part in parts if part)
    if text:
        width_in = axes.get_figure(root=True).get_size_inches()[0]  # type: ignore[union-attr]
        axes.set_title(wrapped(text, width_in - 0.5), loc="left", color="#555555", fontsize=8)


def way(results: Results, queue: str) -> str:
    """The queue of a figure, in words: its direction; with several links its name; empty if there is no other."""
    if results.has_several_links:
        first = results.runs[0].summary["bottleneck_link"]
        return f"queue {queue if '/' in queue else f'{first}/{queue}'}"
    return "" if results.directions == ("down",) and queue == "down" else f"{queue}ward direction"


def where(results: Results, metric: Metric, queue: str) -> str:
    """The queue or the direction of the flows in a figure of a metric, in words; empty for a group."""
    if metric.group or metric.declared.over in ("run", "station"):
        return ""
    if metric.declared.over == "direction" and results.has_several_links:
        return of_network(results, queue)
    return way(results, queue)


def of_network(results: Results, queue: str) -> str:
    """The flows of a network in a figure over their direction, which is that from each flow's own sender."""
    ways = {flow["direction"] for run in results.runs for flow in run.summary["flows"]}
    direction = queue.rpartition("/")[2]
    return "all flows of the network" + (f" with direction {direction}" if len(ways) > 1 else "")


def own_times(results: Results, metric: Metric, direction: str) -> str:
    """A note in a figure of goodputs that add up to more than the link carried; empty for other metrics."""
    return above_capacity(results, [direction]).removeprefix("; ") if metric.name == "goodput_bps" else ""


def wants_log(values: Iterable[float]) -> bool:
    """True if positive values differ by more than ``LOG_FROM``."""
    known = [value for value in values if value > 0.0 and math.isfinite(value)]
    return len(known) > 1 and max(known) / min(known) > LOG_FROM


def from_zero(axes: Axes) -> None:
    """Begins a linear vertical axis at zero unless values are below it; with nothing but zeros it ends at one."""
    shared = axes.get_shared_y_axes().get_siblings(axes)
    ends = [end for one in shared for end in one.dataLim.intervaly if math.isfinite(end)]
    if min(ends, default=0.0) >= 0.0:
        # Values that are nearly equal leave hardly a margin above them.
        top = max(ends, default=0.0)
        axes.set_ylim(0.0, max(axes.get_ylim()[1], 1.05 * top) if top > 0.0 else 1.0)


def plain_number(value: float, _known: int | None = None) -> str:
    """A tick's label without an exponent, as far as that is short."""
    return f"{value:g}"


class _WithinEnds(LogLocator):
    """Like matplotlib's, but without ticks beyond the ends of the axis, which it would make and not draw."""

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        low, high = sorted((vmin, vmax))
        return [tick for tick in super().tick_values(vmin, vmax) if 0.999 * low <= tick <= 1.001 * high]


class _Roomy(LogLocator):
    """Ticks whose numbers have room: 1, 2, 5, 10 …, if they are dense, or powers of ten, or some; at least two."""

    def __init__(self, *, dense: bool) -> None:
        super().__init__()
        self._steps = ((1.0, 2.0, 5.0), (1.0,)) if dense else ((1.0,),)

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        low, high = sorted((vmin, vmax))
        if not 0.0 < low < high:
            return super().tick_values(vmin, vmax)
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        # Ends that are ticks count in spite of rounding.
        low, high = 0.999 * low, 1.001 * high
        sets = [[sub * 10.0**power for power in range(first, last + 1) for sub in subs] for subs in self._steps]
        sets += [[10.0**power for power in range(first, last + 1) if power % every == 0] for every in range(2, 10)]
        sets = [[tick for tick in ticks if low <= tick <= high] for ticks in sets]
        dense = sets[0]
        found = next((ticks for ticks in sets if self._has_room(ticks, low, high)), [])
        return found if len(found) > 1 or len(dense) < 2 else [dense[0], dense[-1]]

    def _has_room(self, ticks: Sequence[float], low: float, high: float) -> bool:
        is_x = self.axis.axis_name == "x"  # type: ignore[union-attr]
        axes: Axes = self.axis.axes  # type: ignore[union-attr]
        pixels = axes.bbox.width if is_x else axes.bbox.height
        decade_pt = pixels * 72.0 / axes.get_figure(root=True).dpi / math.log10(high / low)  # type: ignore[union-attr]
        letters = max((len(plain_number(tick)) for tick in ticks), default=0)
        needed_pt = 5.6 * letters + 3.0 if is_x else 11.0
        return all(math.log10(after / tick) * decade_pt >= needed_pt for tick, after in pairwise(ticks))


def log_axis(axes: Axes, name: Literal["x", "y"], few: float = 300.0) -> None:
    """A logarithmic axis with plain numbers: 1, 2, 5, 10 …, or powers of ten if its ends differ by ``few`` or more."""
    if name == "x":
        axes.set_xscale("log")
    else:
        axes.set_yscale("log")
    axis = axes.xaxis if name == "x" else axes.yaxis
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(_Roomy(dense=low > 0.0 and high / low < few))
    axis.set_minor_locator(_WithinEnds(subs="auto"))
    axis.set_major_formatter(FuncFormatter(plain_number))
    axis.set_minor_formatter(NullFormatter())


def settle(drawn: Figure) -> None:
    """Arranges a finished figure, so that saving it in several formats does not do so each time."""
    engine = drawn.get_layout_engine()
    if engine is not None:
        with applied():
            engine.execute(drawn)
        drawn.set_layout_engine("none")


def save(
    staging: Staging, name: str, drawn: Figure, formats: Sequence[str] = FORMATS, made_of: str | None = None
) -> list[Path]:
    """Stages a finished figure in each format; ``made_of`` as for ``Staging.add``."""
    settle(drawn)
    return [staging.add(f"{name}.{kind}", partial(drawn.savefig, format=kind), made_of) for kind in formats]


def save_all(
    staging: Staging,
    drawings: Iterable[tuple[str, Callable[[], Figure]]],
    formats: Sequence[str] = FORMATS,
    made_of: str | None = None,
) -> list[Path]:
    """Draws figures, given with their names, and stages them in each format; ``made_of`` as for ``Staging.add``."""
    return [path for name, draw in drawings for path in save(staging, name, draw(), formats, made_of)]


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
        links = (one for run in self._results.runs for one in run.summary["links"].items())
        return list(dict.fromkeys(name for name, link in links if "stations" in link))
