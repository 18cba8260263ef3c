"""What the tables of a study's files may hold, told by file and key where one is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Kinds = tuple[type, ...]
"""The types that a value may have; none of them: a list of texts is one of ``LIST`` of ``str``."""

TEXT: Kinds = (str,)
FLAG: Kinds = (bool,)
NUMBER: Kinds = (int, float)
TABLE: Kinds = (dict,)
LIST: Kinds = (list,)
TEXTS: Kinds = (str, list)

_WORDS: dict[type, str] = {
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    dict: "a table",
    list: "a list",
}


def check(
    table: object, where: str, keys: Mapping[str, Kinds], *, needs: Sequence[str] = (), others: bool = False
) -> None:
    """Checks that a table has these keys at most, unless there may be ``others``, and what they hold.

    Raises
    ------
    ValueError
        It does not; the message names the key.
    """
    if not isinstance(table, dict):
        raise ValueError(f"{where}: got {table!r}; must be a table")
    for key in needs:
        if key not in table:
            raise ValueError(f"{where}: {key}: missing; must be {_accepted(keys[key])}")
    for key, value in table.items():
        if key in keys:
            check_value(value, f"{where}: {key}", keys[key])
        elif not others:
            raise ValueError(f"{where}: {key}: unknown key; accepted: {', '.join(keys)}")


def check_value(value: object, where: str, kinds: Kinds) -> None:
    """Checks one value; in a list where a text could be, all must be texts.

    Raises
    ------
    ValueError
        It is of another kind.
    """
    fits = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
    if fits and kinds == TEXTS and isinstance(value, list):
        fits = all(isinstance(one, str) for one in value)
    if not fits:
        raise ValueError(f"{where}: got {value!r}; must be {_accepted(kinds)}")


def check_each(value: object, where: str, kinds: Kinds) -> None:
    """Checks all values of a table, or all elements of a list.

    Raises
    ------
    ValueError
        One is of another kind.
    """
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        check_value(one, f"{where}.{key}", kinds)


def _accepted(kinds: Kinds) -> str:
    if kinds == TEXTS:
        return "a text or a list of texts"
    return " or ".join(dict.fromkeys(_WORDS[kind] for kind in kinds))
