"""The language of claims' formulas: parses text to a syntax tree.

::

    relation   = comparison { "and" comparison }
    comparison = "(" comparison ")" | sum { ("<" | "<=" | ">" | ">=" | "==" | "~=") sum }
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/") factor }
    factor     = number [unit] | "(" sum ")" | function "(" sum { "," sum } ")" [ "." reference ] | reference
    reference  = name { "." name } [ "[" name "=" value { "," name "=" value } "]" ]

A reference is ``scheme.metric.statistic[axis=value]``; ``evaluate`` resolves its names. ``max(a, b).metric`` stands for
``max(a.metric, b.metric)``. A number's unit must be that of the metrics with which it is compared or added.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

FUNCTIONS = frozenset(
    {"abs", "decreasing", "increasing", "max", "mean", "median", "min", "range", "reaching", "slope", "spread"}
)
# A hyphen or plus inside a word belongs to it (m16-poc, fq_codel+abe); an operator stands between words.
_NAME = r"[A-Za-z_]\w*(?:[-+][A-Za-z]\w*)*"
_NUMBER = r"\d+\.?\d*|\.\d+"
_TOKEN = re.compile(
    rf"(?P<number>{_NUMBER})(?:\s*(?P<unit>ms|s|packets|bytes|kB)\b)?|(?P<word>and\b|(?:{'|'.join(FUNCTIONS)})(?=\s*\())"
    rf"|(?P<names>(?:\.\s*)?{_NAME}(?:\s*\.\s*{_NAME})*)(?:\s*\[(?P<at>[^\]]*)\])?|(?P<mark><=|>=|==|~=|[-+*/(),<>])"
)
_PLACE = re.compile(rf"\s*({_NAME})\s*=\s*(?:({_NUMBER})|({_NAME}(?:-\w+)*))\s*")
_ARITHMETIC = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.Is: "~="}


class RelationError(ValueError):
    """A formula has a syntax error."""


@dataclass(frozen=True)
class Number:
    """A constant, and its unit if it says one."""

    value: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit}".rstrip()


@dataclass(frozen=True)
class Reference:
    """``scheme.metric.statistic`` or any part of it, and a place on the grid."""

    names: tuple[str, ...]
    at: tuple[tuple[str, float | bool | str], ...] = ()

    def __str__(self) -> str:
        return ".".join(self.names)


@dataclass(frozen=True)
class Call:
    """A function call, or two numbers joined by +, -, * or /, or conditions that must all hold, joined by ``and``."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Comparison:
    """Sums with comparison operators between them; all must hold: ``a > b >= c``."""

    arguments: tuple[Node, ...]
    operators: tuple[str, ...]


Node = Number | Reference | Call | Comparison


def parse(text: str) -> Node:
    """Parses a relation or a formula. Raises RelationError if the text has a syntax error."""
    return _Parser(text).relation()


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it."""
    yield node
    for child in node.arguments if isinstance(node, Call | Comparison) else ():
        yield from walk(child)


def mapped(node: Node, change: Callable[[Reference], Node]) -> Node:
    """A node with other nodes for its references."""
    if isinstance(node, Call | Comparison):
        return replace(node, arguments=tuple(mapped(one, change) for one in node.arguments))
    return change(node) if isinstance(node, Reference) else node


class _Parser:
    """Reads a formula as one of Python, in which a number stands for each reference, and "is" for "~="."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._terms: list[Reference | Number] = []
        """The references, and the numbers with a unit."""
        self._tokens: list[tuple[str, str]] = []
        """What stands in the formula of Python for what stands in the text."""
        position = 0
        while rest := text[position:].lstrip():
            match = _TOKEN.match(rest)
            if match is None:
                raise self._error(rest[0])
            self._tokens.append((self._in_python(match), match.group()))
            position = len(text) - len(rest) + match.end()

    def relation(self) -> Node:
        source = " ".join(token for token, _ in self._tokens)
        try:
            root = ast.parse(source, mode="eval").body
            parts = root.values if isinstance(root, ast.BoolOp) else [root]
            found = tuple(map(self._comparison, parts))
        except (RecursionError, MemoryError):
            raise RelationError(f"cannot read {self._text[:40]!r}…: it has too many terms") from None
        except SyntaxError as error:
            at = source[: (error.offset or 1) - 1].count(" ")
            raise self._error(self._tokens[at][1] if error.end_offset else "") from None
        return found[0] if len(found) == 1 else Call("and", found)

    def _in_python(self, match: re.Match[str]) -> str:
        if match["names"] is None:
            if match["unit"]:
                return self._term(Number(float(match["number"]), match["unit"]))
            number = match["number"] and re.sub(r"^0+(?=\d)", "", match["number"])  # Python has no leading zeros
            return "is" if match["mark"] == "~=" else number or match.group()
        names = match["names"].removeprefix(".").split(".")
        at = [] if match["at"] is None else [self._place(place) for place in match["at"].split(",")]
        term = self._term(Reference(tuple(map(str.strip, names)), tuple(at)))
        return f".{term}" if match.group().startswith(".") else term

    def _term(self, term: Reference | Number) -> str:
        self._terms.append(term)
        return f"_{len(self._terms) - 1}"

    def _place(self, text: str) -> tuple[str, float | bool | str]:
        match = _PLACE.fullmatch(text)
        if match is None:
            raise self._error(text.strip())
        axis, number, word = match.groups()
        return axis, float(number) if number else word == "true" if word in ("true", "false") else word

    def _comparison(self, node: ast.expr) -> Node:
        if not isinstance(node, ast.Compare):
            return self._sum(node)
        terms = tuple(map(self._sum, (node.left, *node.comparators)))
        return Comparison(terms, tuple(_COMPARISONS[type(operator)] for operator in node.ops))

    def _sum(self, node: ast.expr) -> Node:
        match node:
            case ast.Constant(value):
                return Number(float(str(value)))
            case ast.Name(name) if name not in FUNCTIONS:
                return self._terms[int(name[1:])]
            case ast.BinOp(left, operator, right):
                return Call(_ARITHMETIC[type(operator)], (self._sum(left), self._sum(right)))
            case ast.Call(ast.Name(name), [_, *_] as arguments) if name in FUNCTIONS:
                return Call(name, tuple(map(self._sum, arguments)))
            case ast.Attribute(ast.Call() as call, name):
                found, rest = self._sum(call), self._terms[int(name[1:])]
                of = [one for one in getattr(found, "arguments", ()) if isinstance(one, Reference)]
                if isinstance(found, Call) and isinstance(rest, Reference) and len(of) == len(found.arguments):
                    return Call(
                        found.function, tuple(Reference(one.names + rest.names, one.at + rest.at) for one in of)
                    )
        text = ast.unparse(node)
        raise self._error(re.sub(r"\b_(\d+)", lambda match: str(self._terms[int(match[1])]), text))

    def _error(self, token: str) -> RelationError:
        return RelationError(f"cannot read {self._text!r} at {token or 'its end'!r}")
