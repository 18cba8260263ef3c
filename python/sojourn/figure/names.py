"""Names along an axis: shortened, in lines, slanted or upright, as there is room."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from matplotlib.axes import Axes

LONGEST = 20
UPRIGHT = 24  # most letters of a line of an arm's upright name, of those with 9 points
# Of a letter and of a line, at the 9 points of a tick's label.
_LETTER_IN, _LINE_IN = 0.075, 0.16
_LEAST_IN = 0.1  # room for an upright name in the smallest letters


def differing(names: Sequence[str]) -> list[str]:
    """Names without the words that all names with the same first word share; as they are if they would not differ."""
    words = [[*name.split(", ")[0].split(), *name.split(", ")[1:]] for name in names]
    alike = defaultdict(list)
    for of_name in words:
        alike[of_name[0] if of_name else ""].append(Counter(of_name[1:]))
    shared = {first: set.intersection(*map(set, counts)) for first, counts in alike.items()}
    short = [" ".join([*one[:1], *(word for word in one[1:] if word not in shared[one[0]])]) for one in words]
    return short if len(set(short)) == len(set(names)) else list(names)


def cut(texts: Sequence[str], longest: int = LONGEST) -> list[str]:
    """Texts of at most this length; without their middles where they would be equal without their ends."""
    ends = [text if len(text) <= longest else text[: longest - 1] + "…" for text in texts]
    if len(set(ends)) == len(set(texts)):
        return ends
    half = (longest - 1) // 2
    return [text if len(text) <= longest else f"{text[: longest - 1 - half]}…{text[-half:]}" for text in texts]


def name_places(axes: Axes, name: Literal["x", "y"], texts: Sequence[str], room_in: float) -> None:
    """Names at the positions 0, 1, … of an axis; every second or third if there is no room for all."""
    each_in = room_in / max(1, len(texts))
    shown = cut(texts)
    longest = max(map(len, shown), default=0)
    if name == "y":
        step = max(1, math.ceil(0.14 / each_in))
        axes.set_yticks(range(0, len(shown), step), shown[::step])
        return
    slanted = longest * _LETTER_IN > each_in
    step = max(1, math.ceil((_LINE_IN if slanted else longest * _LETTER_IN) / each_in))
    # Long names stand upright: slanted they would reach beyond the panel.
    _turn(axes, range(0, len(shown), step), shown[::step], 0 if not slanted else 40 if longest < 9 else 90)


def name_arms(
    all_axes: Sequence[Axes], names: Sequence[str], room_in: float, rows: int = 1, *, whole: bool = False
) -> None:
    """Names at 0, 1, … of horizontal axes, each ``room_in`` wide; the figure grows by ``rows`` of them.

    Names of arms are reduced to what differs if they are long, others stay ``whole``.
    """
    each_in = room_in / max(1, len(names))
    letters = max(1, int(each_in / _LETTER_IN))
    found = _in_lines(names, letters, 2)
    if found is None and not whole and max(map(len, names), default=0) > LONGEST:
        names = differing(names)
        found = _in_lines(names, letters, 3)
    rotation, scale, step = 0, 1.0, 1
    if found is None:
        # Long names stand upright: slanted they would reach beyond the panel.
        rotation = 40 if max(map(len, names)) < 9 and each_in > _LINE_IN else 90
        step = max(1, math.ceil(_LEAST_IN / each_in - 1e-9))
        for lines in range(1, max(1, int(each_in / _LEAST_IN)) + 1):
            scale = min(1.0, max(each_in, _LEAST_IN) / (lines * _LINE_IN))
            found = _in_lines(names, int(UPRIGHT / scale), lines)
            if found is not None:
                break
        else:
            found = cut(names, int(UPRIGHT / scale))
    for axes in all_axes:
        _turn(axes, range(0, len(names), step), found[::step], rotation, 9.0 * scale)
    longest = max((len(line) for name in found for line in name.split("\n")), default=0)
    lines = max((name.count("\n") + 1 for name in found), default=1)
    height_in = lines * _LINE_IN if not rotation else longest * 0.072 * math.sin(math.radians(rotation)) * scale
    drawn = all_axes[0].get_figure(root=True)
    assert drawn is not None
    drawn.set_size_inches(drawn.get_figwidth(), drawn.get_figheight() + rows * max(0.0, height_in - _LINE_IN))


def _in_lines(names: Sequence[str], letters: int, most: int) -> list[str] | None:
    """Names in lines of so many letters, broken between words and after "="; None if that needs too many lines."""
    found = []
    for name in names:
        lines = [""]
        for word in re.findall(r"[^ =]*=+| *[^ =]+| +", name):
            if len(lines[-1] + word) > letters:
                lines.append("")
            lines[-1] += word if lines[-1] else word.lstrip()
        if len(lines) > most or max(map(len, lines)) > letters:
            return None
        found.append("\n".join(line.rstrip() for line in lines))
    return found


def _turn(axes: Axes, at: Sequence[int], texts: Sequence[str], rotation: int, size: float = 9.0) -> None:
    axes.set_xticks(at, texts, rotation=rotation, fontsize=size)
    if rotation == 40:
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
