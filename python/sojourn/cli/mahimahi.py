"""The command lines of mahimahi: ``mm-delay``, ``mm-loss`` and ``mm-link``, one in another, before a program."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sojourn._core import ExperimentError, Plan
from sojourn.export import mahimahi
from sojourn.export.events import tables
from sojourn.files import whole
from sojourn.files.typed import must_be
from sojourn.frame.results import Results
from sojourn.frame.swept import as_file

_WAYS = {"uplink": "up", "downlink": "down"}
_INFINITE = "1000000 packets"
_FASTEST = "10 Gbit/s"  # of a line without mm-link
_TUN = "4 B"  # what mahimahi counts beside a packet's IP length; an opportunity is 1500 bytes and these
_KEYS = {"target": "target", "interval": "interval", "qdelay_ref": "target", "max_burst": "max_burst"}
"""Arguments of queues in milliseconds, and our keys."""
_QUEUES = {
    "infinite": ("pfifo", ()),
    "droptail": ("pfifo", ("packets", "bytes")),
    "drophead": ("pfifo_head_drop", ("packets",)),
    "codel": ("codel", ("packets", "target", "interval")),
    "pie": ("pie", ("packets", "qdelay_ref", "max_burst")),
}


_IN_WORDS = (
    (r'^link\.(up\.)?rate\.trace: got "[^"]*"; ', ""),
    (r"^link\.up\.queue\.", "--uplink-queue-args: "),
    (r"^queue\.0\.", "--downlink-queue-args: "),
    (r"^link\.delay", "mm-delay"),
)
"""Keys at the beginning of errors, and what was given for them; errors of a trace name its file."""


@dataclass
class _Link:
    """What mm-link says of a direction."""

    trace: str = ""
    queue: str = "infinite"
    args: str = ""
    log: str | None = None


@dataclass
class Line:
    """A line as mahimahi's commands describe it, and the program behind it."""

    delay_ms: int = 0
    loss: dict[str, float] = field(default_factory=lambda: {"up": 0.0, "down": 0.0})
    links: dict[str, _Link] = field(default_factory=dict)
    program: list[str] = field(default_factory=list)
    metered: bool = False

    def text(self) -> str:
        """The experiment, as TOML."""
        link: dict[str, object] = {"rate": _FASTEST, "delay": f"{self.delay_ms} ms", "overhead": _TUN}
        up: dict[str, object] = {"rate": _FASTEST, "loss": self.loss["up"]}
        queue: dict[str, object] = {"aqm": "pfifo", "limit": _INFINITE}
        link["loss"] = self.loss["down"]
        up["queue"] = queue
        if self.links:
            link["rate"], up["rate"] = ({"trace": self.links[way].trace} for way in ("down", "up"))
            queue, up["queue"] = (_queue(f"--{way}link-queue", self.links[way]) for way in ("down", "up"))
        document = {
            "experiment": {"duration": "1 s"},
            "record": {"packets": any(link.log for link in self.links.values())},
            "link": {**link, "up": up},
            "queue": [queue],
        }
        return as_file(document)

    def plan(self, command: str, replaced: list[tuple[str, str]], queue: str | None) -> Plan:
        """Its plan. Errors name what was given, no place in the experiment, which no user has seen."""
        try:
            return Plan.for_programs(self.text(), command, replaced, queue)
        except ExperimentError as error:
            told = re.sub(rf"^{command}:\d+: ", "", str(error))
            for key, words in _IN_WORDS if told != str(error) else ():
                told = re.sub(key, words, told)
            raise ExperimentError(told) from None

    def check_logs(self) -> None:
        """Checks, before the program is started, that the logs can be written. Raises ExperimentError if one cannot."""
        for way, link in self.links.items():
            if link.log:
                try:
                    Path(link.log).open("a").close()
                except OSError as error:
                    raise ExperimentError(f"--{way}link-log: {link.log}: {error.strerror}") from None

    def write_logs(self, results: Results) -> None:
        """Writes the logs that mm-link was asked for; empty ones if no packet has come."""
        logs = {way: link for way, link in self.links.items() if link.log}
        has_packets = bool(logs) and bool(results.runs[0].summary["flows"])
        for run, number, way, table in tables(results) if has_packets else ():
            if link := logs.pop(way, None):
                text = mahimahi.log(results, run, (number, way), table, link.trace)
                whole.write(Path(str(link.log)), text.encode())
        for link in logs.values():
            whole.write(Path(str(link.log)), b"")


def is_given(words: Sequence[str]) -> bool:
    """True if a command line begins with one of mahimahi's."""
    return bool(words) and words[0].startswith("mm-")


def read(words: Sequence[str]) -> Line:
    """The line and the program of a command line, if it has only what mahimahi accepts and is to be had here."""
    line, rest = Line(), list(words)
    while is_given(rest):
        command = rest.pop(0)
        if command == "mm-delay":
            line.delay_ms += int(_number(command, _next(command, rest, "MILLISECONDS")))
        elif command == "mm-loss":
            way = _next(command, rest, "uplink|downlink")
            if way not in _WAYS:
                raise ExperimentError(f'mm-loss: got "{way}"; must be uplink or downlink')
            share = _number(command, _next(command, rest, "RATE"))
            if not 0.0 <= share <= 1.0:
                raise ExperimentError(f"mm-loss: got {share:g}; must be from 0 to 1")
            line.loss[_WAYS[way]] += (1.0 - line.loss[_WAYS[way]]) * share
        elif command == "mm-link" and not line.links:
            rest = _link(line, rest)
        elif command == "mm-link":
            raise ExperimentError("mm-link: got two; must be one, with more links in a file: [[link]]")
        else:
            raise ExperimentError(f'shell: got "{command}"; must be mm-delay, mm-loss or mm-link')
        if rest[:1] == ["--"]:
            rest.pop(0)
    line.program = rest or [os.environ.get("SHELL", "/bin/sh")]
    return line


def _link(line: Line, rest: list[str]) -> list[str]:
    """Reads what follows mm-link; returns what follows that."""
    ways = {"up": _Link(), "down": _Link()}
    traces: list[str] = []
    while rest and rest[0] != "--" and (rest[0].startswith("-") or len(traces) < 2):
        word = rest.pop(0)
        if not word.startswith("-"):
            traces.append(word)
            continue
        option, equals, value = word.partition("=")
        if option.startswith("--meter-"):
            line.metered = True
            continue
        direction, _, what = option.removeprefix("--").partition("-")
        name = {"queue": "queue", "queue-args": "args", "log": "log"}.get(what)
        if direction not in _WAYS or name is None:
            why = "the trace repeats here" if option == "--once" else "must be an option of mm-link"
            raise ExperimentError(f"mm-link: got {option}; {why}")
        setattr(ways[_WAYS[direction]], name, value if equals else _next(option, rest, "VALUE"))
    if len(traces) < 2:
        raise ExperimentError("mm-link: must have two traces: mm-link UPLINK DOWNLINK [OPTION]... [COMMAND]")
    ways["up"].trace, ways["down"].trace = traces
    line.links = ways
    return rest


def _queue(option: str, link: _Link) -> dict[str, object]:
    """The discipline of a direction."""
    must_be(link.queue, _QUEUES, option)
    aqm, accepted = _QUEUES[link.queue]
    given = dict(part.strip().partition("=")[::2] for part in link.args.split(",") if part.strip())
    table: dict[str, object] = {"aqm": aqm}
    for name, value in given.items():
        if name not in accepted:
            known = f"must be of {', '.join(accepted)}" if accepted else f"{link.queue} has none"
            raise ExperimentError(f'{option}-args: got "{name}"; {known}')
        number = int(_number(f"{option}-args", value))
        table[_KEYS.get(name, "limit")] = f"{number} {'ms' if name in _KEYS else 'B' if name == 'bytes' else name}"
        if name == "bytes":
            table["aqm"] = "bfifo"
    if "bytes" in given and "packets" in given:
        raise ExperimentError(f'{option}-args: got "{link.args}"; must have one limit, bytes or packets')
    if link.queue == "infinite":
        table["limit"] = _INFINITE
    elif link.queue in ("droptail", "drophead") and "limit" not in table:
        raise ExperimentError(f'{option}-args: not given; must have a limit: "packets=100"')
    return table


def _next(command: str, rest: list[str], what: str) -> str:
    if not rest:
        raise ExperimentError(f"{command}: {what} is missing")
    return rest.pop(0)


def _number(command: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number < float("inf"):
        raise ExperimentError(f'{command}: got "{text}"; must be a number from 0')
    return number
