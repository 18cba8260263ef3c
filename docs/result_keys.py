"""The keys of a run's result, as the structs of Rust declare them: types in schema.py, tables in docs/results.md.

A struct's doc comments are what its keys mean; the registry of metrics has their units. Run it after a change of such a
struct or of the units (`make docs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from sojourn.frame.registry import unit_of

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "python" / "sojourn" / "schema.py"
PAGE = ROOT / "docs" / "results.md"
SOURCES = (
    *(f"crates/measure/src/{name}.rs" for name in ("result", "flow", "groups", "cell", "distribution")),
    "crates/experiment/src/run_spec.rs",
    "crates/agent/src/summary.rs",
    "crates/agent/src/recording.rs",
)
TYPES = {
    "Distribution": "Quantiles",
    "Spread": "Spread",
    "InnerQueue": "InnerQueue",
    "Bottleneck": "Bottleneck",
    "Exchanged": "Exchanged",
    "Station": "Station",
    "Medium": "Medium",
    "Link": "Link",
    "Video": "Video",
    "Flow": "Flow",
    "Group": "Group",
    "Lateness": "Lateness",
    "Run": "RunResult",
}
"""The types of Python, each by its struct, in the order in which they need each other."""
SIMPLE = {"f64": "float", "String": "str", "&'static str": "str", "Json": "dict[str, object]"}
SIMPLE |= dict.fromkeys(("u8", "u32", "u64", "usize"), "int")


@dataclass(frozen=True)
class Key:
    """A key of a table."""

    name: str
    type: str
    """As Python writes it."""
    words: str
    may_miss: bool = False

    @property
    def may_be(self) -> str:
        """What may stand in the place of its value."""
        return " or ".join(["missing"] * self.may_miss + ["null"] * (" | None" in self.type))


_DOC = r"((?:^ *///[^\n]*\n)*)"
_STRUCT = re.compile(_DOC + r"(?:^#\[[^\n]*\n)*^(?:pub )?struct (\w+)(?:<[^\n]*>)? \{\n(.*?)^\}", re.M | re.S)
_DISTRIBUTION = re.compile(_DOC + r"^    (\w+) \{((?:\s*\w+: [\d.]+,?)+)\s*\}", re.M)
_FIELD = re.compile(_DOC + r"((?:^ *#\[[^\n]*\n)*)^ *(?:pub )?(\w+): (.+),$", re.M)


def _words(comment: str) -> str:
    text = " ".join(line.strip().removeprefix("///").strip() for line in comment.splitlines())
    return re.sub(r"\[`(\w+)`\](?:\(.*?\))?", r"`\1`", text).replace("`None`", "null")


class Declared:
    """The structs of Rust that a result is made of."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.words: dict[str, str] = {}
        for source in SOURCES:
            text = (ROOT / source).read_text(encoding="utf-8").replace("&'a ", "")
            for comment, name, fields in _STRUCT.findall(text) + _DISTRIBUTION.findall(text):
                self.fields[name] = fields
                self.words[name] = _words(comment)

    def keys(self, struct: str) -> list[Key]:
        """A struct's keys, those of what it flattens among them."""
        if struct in ("Quantiles", "Spread"):
            one = "Statistic" if struct == "Quantiles" else "float | None"
            return [Key("n", "int", ""), *(Key(name, one, "") for name in ["mean", *self.quantiles(struct)])]
        found: list[Key] = []
        for comment, attributes, name, kind in _FIELD.findall(self.fields[struct]):
            if "serde(skip)" in attributes or kind == "T":
                continue
            may_miss = "skip_serializing_if" in attributes
            if "serde(flatten)" in attributes:
                found += self._flattened(struct, kind)
            else:
                known = self._python(kind)
                known = known.removesuffix(" | None") if may_miss else known
                found.append(Key(name, known, _words(comment), may_miss))
        if struct == "RunResult":
            found += self.keys("Element")
            found += [replace(key, may_miss=True) for key in self.keys("LinuxRun")]
        return found

    def quantiles(self, struct: str) -> dict[str, str]:
        """The quantiles of a distribution, with the share of each."""
        return dict(re.findall(r"(\w+): ([\d.]+)", self.fields[struct]))

    def _flattened(self, struct: str, kind: str) -> list[Key]:
        if struct == "LinuxRun":
            return []
        if by_direction := re.fullmatch(r"BTreeMap<&'static str, (\w+)>", kind):
            return [Key(way, by_direction[1], "", may_miss=True) for way in ("down", "up")]
        if maybe := re.fullmatch(r"Option<(\w+)>", kind):
            return [replace(key, may_miss=True) for key in self.keys(maybe[1])]
        return self.keys(kind)

    def _python(self, kind: str) -> str:
        if kind in SIMPLE:
            return SIMPLE[kind]
        if of := re.fullmatch(r"Option<(.+)>", kind):
            return f"{self._python(of[1])} | None"
        if of := re.fullmatch(r"Box<(.+)>", kind):
            return self._python(of[1])
        if of := re.fullmatch(r"(?:BTreeMap<(?:String|&'static str), |Vec<\(String, )(\w+)\)?>", kind):
            return f"dict[str, {self._python(of[1])}]"
        if of := re.fullmatch(r"Vec<(.+)>", kind):
            return f"list[{self._python(of[1])}]"
        if kind == "Links":
            return "dict[str, Link]"
        return next(name for name, struct in TYPES.items() if struct == kind)


def schema() -> str:
    """schema.py with the types of results as they are declared now."""
    declared = Declared()
    shares = "".join(f'    "{name}": {float(share)},\n' for name, share in declared.quantiles("Quantiles").items())
    lines = [f"QUANTILES: dict[str, float] = {{\n{shares}}}"]
    lines += ['"""The quantiles of a distribution in a summary, by key."""', "", ""]
    for name, struct in TYPES.items():
        words = re.split(r"[.:;] |\.$", declared.words[struct])[0].replace("`", "``")
        lines += [f"class {name}(TypedDict):", f'    """{words}."""', ""]
        for key in declared.keys(struct):
            lines.append(f"    {key.name}: " + (f"NotRequired[{key.type}]" if key.may_miss else key.type))
        lines += ["", ""]
    return _between(SCHEMA, r"(# Generated[^\n]*\n\n)(.*?)(# Until here)", lambda _: "\n".join([*lines, ""]))


def page() -> str:
    """The page of results with the tables of keys as they are declared now."""
    declared = Declared()
    return _between(
        PAGE, r"(<!-- keys of (\w+) -->\n)(.*?)(<!-- end -->)", lambda name: _rows(declared.keys(TYPES[name]))
    )


def _between(path: Path, pattern: str, made: Callable[[str], str]) -> str:
    def filled(found: re.Match[str]) -> str:
        begin, *name, _, end = found.groups()
        return begin + made("".join(name)) + end

    return re.sub(pattern, filled, path.read_text(encoding="utf-8"), flags=re.S)


def _rows(keys: list[Key]) -> str:
    lines = ["| key | unit | may be | meaning |", "| --- | --- | --- | --- |"]
    together: list[list[Key]] = []
    for key in keys:
        # What has no words of its own is as the key before.
        together.append([*together.pop(), key] if together and not key.words else [key])
    for row in together:
        names = ", ".join(f"`{key.name}`" for key in row)
        units = [unit_of(key.name).unit for key in row]
        words = row[0].words.replace("|", "\\|")
        lines.append(f"| {names} | {', '.join(dict.fromkeys(units))} | {row[-1].may_be} | {words} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
