"""The language of claims' formulas: parses text to a syntax tree.

::

    relation   = comparison { "and" comparison }
    comparison = sum { ("<" | "<=" | ">" | ">=" | "==" | "~=") sum }
    sum        = product { ("+" | "-") product }
    product    = factor { ("*" | "/") factor }
    factor     = number [unit] | "(" sum ")" | function "(" sum { "," sum } ")" [ "." reference ] | reference
    reference  = name { "." name } [ "[" name "=" value { "," name "=" value } "]" ]

A reference is ``scheme.metric.statistic[axis=value]``; ``evaluate`` resolves its names. ``max(a, b).metric`` stands for
``max(a.metric, b.metric)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

FUNCTIONS = frozenset(
    {"abs", "decreasing", "increasing", "max", "mean", "median", "min", "range", "reaching", "slope", "spread"}
)
_COMPARISONS = ("<=", ">=", "==", "~=", "<", ">")
_UNITS = frozenset({"ms", "s", "packets", "bytes", "kB"})

# A hyphen or plus inside a word belongs to it (m16-poc, fq_codel+abe); an operator stands between words.
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*|\.\d+)|(?P<name>[A-Za-z_]\w*(?:[-+][A-Za-z]\w*)*)|(?P<mark><=|>=|==|~=|[-+*/()\[\],.<>=]))"
)


class RelationError(ValueError):
    """A formula has a syntax error."""


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True)
class Reference:
    """``scheme.metric.statistic`` or any part of it, and a place on the grid."""

    names: tuple[str, ...]
    at: tuple[tuple[str, float | bool | str], ...] = ()


@dataclass(frozen=True)
class Call:
    """A function call."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Arithmetic:
    """Two numbers joined by +, -, * or /."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Comparison:
    """Sums with comparison operators between them; all must hold: ``a > b >= c``."""

    terms: tuple[Node, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True)
class All:
    """Conditions that must all hold."""

    parts: tuple[Node, ...]


Node = Number | Reference | Call | Arithmetic | Comparison | All


def parse(text: str) -> Node:
    """Parses a relation or a formula. Raises RelationError if the text has a syntax error."""
    parser = _Parser(text)
    node = parser.relation()
    parser.expect_end()
    return node


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it."""
    yield node
    match node:
        case Call(_, children) | Comparison(children, _) | All(children):
            pass
        case Arithmetic(_, left, right):
            children = (left, right)
        case _:
            children = ()
    for child in children:
        yield from walk(child)


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node with what is below it changed."""
    match node:
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, change(left), change(right))
        case Call(function, arguments):
            return Call(function, tuple(map(change, arguments)))
        case Comparison(terms, operators):
            return Comparison(tuple(map(change, terms)), operators)
        case All(parts):
            return All(tuple(map(change, parts)))
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0

    def relation(self) -> Node:
        parts = [self._comparison()]
        while self._take("and"):
            parts.append(self._comparison())
        return parts[0] if len(parts) == 1 else All(tuple(parts))

    def expect_end(self) -> None:
        if self._next < len(self._tokens):
            raise self._error()

    def _comparison(self) -> Node:
        terms, operators = [self._sum()], []
        while self._peek() in _COMPARISONS:
            operators.append(self._advance())
            terms.append(self._sum())
        return Comparison(tuple(terms), tuple(operators)) if operators else terms[0]

    def _sum(self) -> Node:
        node = self._product()
        while self._peek() in ("+", "-"):
            node = Arithmetic(self._advance(), node, self._product())
        return node

    def _product(self) -> Node:
        node = self._factor()
        while self._peek() in ("*", "/"):
            node = Arithmetic(self._advance(), node, self._factor())
        return node

    def _factor(self) -> Node:
        token = self._advance()
        if token == "(":
            node = self._sum()
            self._expect(")")
            return node
        if _is_number(token):
            if self._peek() in _UNITS:
                self._advance()
            return Number(float(token))
        if token in FUNCTIONS and self._take("("):
            return self._call(token)
        return self._reference(token)

    def _call(self, function: str) -> Node:
        arguments = [self._sum()]
        while self._take(","):
            arguments.append(self._sum())
        self._expect(")")
        if self._take("."):
            rest = self._reference(self._advance())
            arguments = [self._extended(argument, rest) for argument in arguments]
        return Call(function, tuple(arguments))

    def _extended(self, argument: Node, rest: Reference) -> Reference:
        if not isinstance(argument, Reference):
            raise self._error()
        return replace(argument, names=argument.names + rest.names, at=argument.at + rest.at)

    def _reference(self, first: str) -> Reference:
        names = [self._name(first)]
        while self._take("."):
            names.append(self._name(self._advance()))
        at = []
        if self._take("["):
            at.append(self._place())
            while self._take(","):
                at.append(self._place())
            self._expect("]")
        return Reference(tuple(names), tuple(at))

    def _place(self) -> tuple[str, float | bool | str]:
        axis = self._name(self._advance())
        self._expect("=")
        value = self._advance()
        if _is_number(value):
            return axis, float(value)
        if value in ("true", "false"):
            return axis, value == "true"
        value = self._name(value)
        while self._peek() == "-":  # a name like cubic-hystart; there is nothing to subtract here
            value += self._advance() + self._advance()
        return axis, value

    def _name(self, token: str) -> str:
        if not (token[0].isalpha() or token[0] == "_") or token == "and":
            raise self._error()
        return token

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _advance(self) -> str:
        token = self._peek()
        if not token:
            raise self._error()
        self._next += 1
        return token

    def _take(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._next += 1
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self._error()

    def _error(self) -> RelationError:
        return RelationError(f"cannot read {self._text!r} at {self._peek() or 'its end'!r}")


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            raise RelationError(f"cannot read {text!r} at {text[position:].strip()[0]!r}")
        tokens.append(match.group().strip())
        position = match.end()
    return tokens


def _is_number(token: str) -> bool:
    return token[0].isdigit() or token[0] == "."
