"""A line at home as an experiment: the modem with its queue, a router that may shape, devices, what the family does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sojourn._core import ExperimentError
from sojourn.files.typed import all_must_be, must_be
from sojourn.frame.statistics import FEWEST, three_digits
from sojourn.lines import course
from sojourn.lines.course import Course, table

ETHERNET = 14  # bytes of a packet's link header that the router counts unless told otherwise
PTM = 64 / 65  # share of the rate of a PTM line that carries bytes of packets (IEEE 802.3, 61.3.3)
AS_IT_IS = "as it is"
LEAST_BPS, MOST_BPS = 100e3, 2.5e9


@dataclass(frozen=True)
class Line:
    """A kind of line: how it frames packets, by the keywords of tc-cake(8)."""

    words: str
    keyword: str
    overhead: int = ETHERNET
    framing: str = "noatm"
    mpu: int = 0
    varies: bool = False
    """Its rate varies: it needs a recording."""

    def keys(self) -> dict[str, str]:
        """The keys of a link or of CAKE for its framing."""
        keys = {"overhead": f"{self.overhead} B"}
        keys |= {"framing": self.framing} if self.framing != "noatm" else {}
        return keys | ({"mpu": f"{self.mpu} B"} if self.mpu else {})


LINES = {
    "dsl": Line("ADSL, ATM cells and PPPoE", "pppoe-llcsnap", 40, "atm"),
    "vdsl": Line("VDSL2, PTM and PPPoE", "pppoe-ptm", 30, "ptm"),
    "docsis": Line("cable, DOCSIS", "docsis", 18, mpu=64),
    "fibre": Line("fibre, Ethernet", "ethernet", 38, mpu=84),
    "lte": Line("LTE or 5G", "raw", varies=True),
    "starlink": Line("Starlink", "raw", varies=True),
}

ACTIVITIES: dict[str, dict[str, object]] = {
    "calls": {"kind": "voip", "direction": "both"},
    "meeting": {"kind": "call"},
    "game": {"kind": "game"},
    "web": {"kind": "web"},
    "video": {"kind": "video"},
    "download": {"kind": "bulk", "flows": 4},
    "upload": {"kind": "bulk", "flows": 2, "direction": "up"},
}
"""What people do, as keys of ``[[traffic]]``; each on a device of its own, with a server of its own."""
STARTS_S = {"web": (1.0, 1.0), "video": (0.0, 1.0), "download": (0.0, 1.0), "upload": (0.0, 1.0)}
"""Between which times an activity begins, unless it is at once."""
LEAD_S = 30.0
"""How long a meeting has gone on when the rest begins: its rate grows by 8 % a second from 0.3 to 2.5 Mbit/s."""

DISCIPLINES = {"cake": "CAKE", "fq_codel": "FQ-CoDel", "fq_pie": "FQ-PIE"}
STEADY_SHARES, VARYING_SHARES = (85, 90, 95), (40, 60, 80)
"""The rates to which the router shapes, in percent of the line's; of its mean if it varies."""


@dataclass(frozen=True)
class Setting:
    """What the router does. ``discipline`` is empty if it does nothing."""

    label: str
    discipline: str = ""
    down_kbps: int = 0
    up_kbps: int = 0


@dataclass(frozen=True)
class Home:
    """A line and what is done over it."""

    line: Line
    down_bps: float
    up_bps: float
    doing: tuple[str, ...]
    buffer_ms: float
    rtt_ms: float
    recorded: Course | None = None

    @property
    def title(self) -> str:
        """In words."""
        rates = f"{three_digits(self.down_bps / 1e6)}/{three_digits(self.up_bps / 1e6)} Mbit/s"
        return f"{self.line.words}, {rates}{' on average' if self.recorded else ''}: {', '.join(self.doing)}"

    @property
    def shares(self) -> tuple[int, ...]:
        """The shares of its rates to try, in percent."""
        return VARYING_SHARES if self.recorded else STEADY_SHARES

    @property
    def lead_s(self) -> float:
        """How long a meeting goes on alone, if there is one."""
        return LEAD_S if "meeting" in self.doing else 0.0

    @property
    def together_s(self) -> float:
        """The rest of a run: twenty seconds, less on fast lines, where a few have as many packets."""
        if self.recorded is not None:
            return min(max(self.recorded.seconds, 15.0), 30.0)
        return round(min(20.0, max(4.0, 3e9 / (self.down_bps + self.up_bps))), 1)


def home(
    line: str,
    *,
    down_bps: float | None,
    up_bps: float | None,
    doing: Sequence[str],
    buffer_ms: float,
    rtt_ms: float,
    recorded: Course | None = None,
    folder: Path | None = None,
) -> Home:
    """A home, checked; ``folder`` is that to which a recording's traces are relative."""
    must_be(line, LINES, "--line")
    all_must_be(doing, ACTIVITIES, "--doing")
    if not doing:
        raise ExperimentError(f"--doing: got nothing; must be some of {', '.join(ACTIVITIES)}, with commas")
    if twice := [one for index, one in enumerate(doing) if one in doing[:index]]:
        raise ExperimentError(f'--doing: got "{twice[0]}" twice; must be different activities')
    kind = LINES[line]
    if kind.varies and recorded is None:
        raise ExperimentError(f"--trace: missing; the rate of {line} varies: give a recording that link import reads")
    rates = []
    for option, rate, way in (("--down", down_bps, "down"), ("--up", up_bps, "up")):
        course_ = getattr(recorded, way, ())
        if rate is None and course_:
            rate = course.mean_bps(course_, recorded.seconds if recorded else 0.0, folder or Path())
        if rate is None:
            other = ", or --trace-up" if recorded and way == "up" else ""
            raise ExperimentError(f"{option}: missing; must be the line's rate {way}, like 20mbit{other}")
        if not LEAST_BPS <= rate <= MOST_BPS:
            raise ExperimentError(f"{option}: got {three_digits(rate / 1e6)} Mbit/s; must be from 0.1 to 2500 Mbit/s")
        rates.append(rate)
    for option, ms in (("--modem-buffer", buffer_ms), ("--rtt", rtt_ms)):
        if not 1 <= ms <= 10_000:
            given = f"{ms:g} ms" if ms < 1000 else f"{ms / 1000:.12g} s"
            raise ExperimentError(f"{option}: got {given}; must be from 1 ms to 10 s")
    if recorded is not None:
        rtt_ms = max(rtt_ms, recorded.rtt_ms())
    return Home(kind, rates[0], rates[1], tuple(doing), buffer_ms, rtt_ms, recorded)


def settings(of: Home) -> list[Setting]:
    """What the router may do: nothing first, then each discipline at the middle share of the line's rates."""
    middle = of.shares[1]
    return [Setting(AS_IT_IS), *(shaped(of, name, middle, middle) for name in DISCIPLINES)]


def each_way(of: Home, discipline: str) -> list[Setting]:
    """A discipline at all shares down and up, equal ones first."""
    pairs = sorted(((down, up) for down in of.shares for up in of.shares), key=lambda pair: pair[0] != pair[1])
    return [shaped(of, discipline, down, up) for down, up in pairs]


def shaped(of: Home, discipline: str, down: float, up: float) -> Setting:
    """A discipline at these percentages of the line's rates."""
    shares = f"{down:g} %" if down == up else f"{down:g} % down, {up:g} % up"
    kbps = (round(of.down_bps * down / 1e5), round(of.up_bps * up / 1e5))
    return Setting(f"{DISCIPLINES[discipline]} at {shares}", discipline, *kbps)


def htb_kbps(line: Line, kbps: int) -> int:
    """The rate of HTB above a line: it knows cells of ATM, but not the bytes that PTM adds."""
    return round(kbps * PTM) if line.framing == "ptm" else kbps


def experiment(of: Home, tried: Sequence[Setting], *, seed: int = 1, repeat: int = FEWEST, command: str = "") -> str:
    """The experiment file: every setting is a case. The modem's queue is beyond the router in each."""
    own = {} if of.recorded is None else of.recorded.keys(of.lead_s)
    modem = {"aqm": "bfifo", "limit": f"{of.buffer_ms:g} ms"}
    up = {"rate": own.get("up.rate", f"{of.up_bps / 1000:.0f} kbit/s"), "queue": modem}
    down: dict[str, object] = {"name": "line", "from": "internet", "to": "modem"}
    down |= {"rate": f"{of.down_bps / 1000:.0f} kbit/s"} | {key: own[key] for key in ("rate", "delay") if key in own}
    duration_s, warmup_s = of.lead_s + of.together_s, of.lead_s + of.together_s / 4
    times = {"duration": f"{duration_s:g} s", "warmup": f"{warmup_s:.3g} s"}
    file = [
        f"# {command or of.title}",
        *table("[experiment]", {"name": of.title, **times, "repeat": repeat, "seed": seed}),
        "# The line, with the modem's queue in front of it up, and the operator's down.",
        *table("[[link]]", {**down, **of.line.keys(), "queue": modem, "up": up}),
        "# The router's port to the modem. The cases are what it may do.",
        *_link("router", "modem", "home", {}),
    ]
    for activity in of.doing:
        file += _link(f"lan-{activity}", "home", activity, {"queue": {"aqm": "pfifo"}})
        file += _link(f"server-{activity}", f"{activity}-server", "internet", {"queue": {"aqm": "pfifo"}})
    file += table("[[queue]]", {"aqm": "pfifo"})
    for setting in tried:
        changes = _changes(of.line, setting)
        file += table("[[case]]", {"label": setting.label} | ({"set": changes} if changes else {}))
    for activity in of.doing:
        keys = {"name": activity, "from": f"{activity}-server", "to": activity, "rtt": f"{of.rtt_ms:g} ms"}
        file += table("[[traffic]]", keys | ACTIVITIES[activity] | _start(activity, of.lead_s))
    return "\n".join([*file, "[record]", "qoo = true"]) + "\n"


def _start(activity: str, lead_s: float) -> dict[str, str]:
    """When it begins: a meeting at once, all else ``lead_s`` later."""
    first, last = (0.0 if activity == "meeting" else lead_s + at for at in STARTS_S.get(activity, (0.0, 0.0)))
    return {"start": f"{first:g} s" if first == last else f"{first:g}..{last:g} s"} if last else {}


def _link(name: str, begin: str, end: str, more: Mapping[str, object]) -> list[str]:
    rates = {"rate": "10 Gbit/s", "up": {"rate": "10 Gbit/s"}}
    return table("[[link]]", {"name": name, "from": begin, "to": end, **rates, **more})


def _changes(line: Line, setting: Setting) -> dict[str, object]:
    """What a setting changes: CAKE shapes by itself, other disciplines are below HTB."""
    if setting.discipline == "cake":
        rates = {"bandwidth": f"{setting.down_kbps} kbit/s", "up": {"bandwidth": f"{setting.up_kbps} kbit/s"}}
        return {"queue.0": {"aqm": "cake", **rates, **line.keys()}}
    if not setting.discipline:
        return {}
    keys = line.keys()
    if line.framing == "ptm":
        del keys["framing"]
    return {
        "queue.0": {"aqm": setting.discipline},
        "link.router.rate": f"{htb_kbps(line, setting.down_kbps)} kbit/s",
        "link.router.up.rate": f"{htb_kbps(line, setting.up_kbps)} kbit/s",
        **{f"link.router.{key}": value for key, value in keys.items()},
    }
