"""A testbed: the file of its hosts, the agent on each of them over ssh, and runs in real time, one at a time.

Each host carries out its part of a job. Before a plan is run the hosts and the links between them are checked; an error
is a line that names the host. Clocks are compared over ssh: the offset of each agent's monotonic clock is known up to
half the round-trip time.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, Literal

import msgspec

from sojourn import _core
from sojourn.files import typed
from sojourn.linux import programs
from sojourn.linux.host import alone, own_lock
from sojourn.linux.kernel import cache_directory
from sojourn.linux.programs import LinuxError

CLEAN_UP_S = 30.0
"""Seconds for the agents to clean up after they were told to stop."""
BEAT_S = 2.0
"""Between signs of life; an agent that hears none for 10 s ends."""
MOMENT_S = 0.05
"""How long to wait for a message before looking for those of others."""
ANSWER_S = 30.0
"""How long an agent may take to answer."""
PIECE = 1 << 16
"""Bytes of the agent that are sent at once."""
NEEDED = ("htb", "netem")
"""The disciplines that make the links of an experiment."""
OTHERS = (
    "prio", "pfifo", "red", "codel", "fq_codel", "pie", "fq_pie", "sfq", "choke", "sfb", "fq", "hhf", "cake", "dualpi2",
)  # fmt: skip
"""Those that some experiments need."""
PROBE_MS = 150
"""How long a probe of a link sends."""
ABOVE = 1.25
"""The rate of a probe, and what of it must arrive: above and still above the highest rate of the files' queues."""
CARRIED = 1.1
QUIET_MS = 150
"""How long the links are listened to before anything is sent."""
FOREIGN = 0.01
"""The share of the highest rate that may pass them in this time."""
ASKED, MOST_ASKED = 8, 40
"""Questions of a clock, and as long as it is not known well enough."""
ATTEMPTS = 3
"""Probes of a link that seems too slow: a busy host may be."""
OFFSET_S = 0.005
"""The largest uncertainty of a clock's offset, up to which the hosts begin together."""
DRIFT = 200e-6
"""The largest drift of a clock beside ours: twice that of an oscillator in a computer."""
AHEAD_S = 0.1
"""From the last message before a run to its begin."""
_SSH = ("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=3")
_INTERFACE = re.compile(r"[\w.@-]{1,15}")
_WIRES = {"sender": ("out",), "router": ("in", "out"), "receiver": ("in",)}


class Host(typed.Strict, frozen=True):
    """A machine of a testbed."""

    name: str
    ssh: str
    """The destination as ssh(1) takes it."""
    role: Literal["sender", "router", "receiver"]
    in_: str | None = msgspec.field(default=None, name="in")
    """The interface towards the senders."""
    out: str | None = None
    """The interface towards the receivers."""

    @property
    def wires(self) -> list[str]:
        """Its interfaces, each once."""
        return list(dict.fromkeys(wire for wire in (self.in_, self.out) if wire is not None))


class _File(typed.Strict, frozen=True):
    host: list[Host]


class Lab(msgspec.Struct, frozen=True):
    """A testbed: senders, a router, receivers."""

    path: str
    hosts: tuple[Host, ...]

    @classmethod
    def read(cls, path: Path) -> Lab:
        """Reads a testbed's file. Raises ExperimentError: where, what, and what is accepted."""
        try:
            data = typed.read_toml(path)
        except OSError as error:
            raise _core.ExperimentError(f"{path}: {error.strerror}") from None
        try:
            hosts = typed.convert(data, _File).host
            _check(hosts)
        except ValueError as error:
            raise _core.ExperimentError(f"{path}: {error}") from None
        return cls(str(path), tuple(hosts))

    @property
    def machines(self) -> str:
        """The hosts as the agent's parts take them, as JSON."""
        return msgspec.json.encode(self.hosts).decode()

    def refused(self, host: Host, what: object) -> _core.ExperimentError:
        """The error that a host is not fit for a run."""
        return _core.ExperimentError(f"{self.path}: {host.name}: {what}")


def _check(hosts: list[Host]) -> None:
    """Checks what the types do not."""
    for number, host in enumerate(hosts):
        where, wires = f"host.{number}", _WIRES[host.role]
        for key, text in (("name", host.name), ("ssh", host.ssh)):
            if not text or text.startswith("-") or not text.isprintable():
                raise ValueError(f'{where}: {key}: got "{text}"; must be a text that does not begin with "-"')
        for key, wire in (("in", host.in_), ("out", host.out)):
            if key in wires and wire is None:
                raise ValueError(f'{where}: {key}: missing; must be an interface of a {host.role}, like "eth1"')
            if key not in wires and wire is not None:
                raise ValueError(f"{where}: {key}: unknown key of a {host.role}; accepted: {', '.join(wires)}")
            if wire is not None and (wire.startswith("-") or not _INTERFACE.fullmatch(wire)):
                raise ValueError(f'{where}: {key}: got "{wire}"; must be an interface, like "eth1"')
    names = [host.name for host in hosts]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ValueError(f'host.{number}: name: got "{name}" twice; must differ')
    for role in _WIRES:
        count = sum(host.role == role for host in hosts)
        if count == 0 or (role == "router" and count > 1):
            wanted = "one router" if role == "router" else f"at least one {role}"
            raise ValueError(f"host: got {count} with the role {role}; must be {wanted}")


class Connection:
    """The agent on a host, copied there and removed again at its start."""

    def __init__(self, host: Host, agent: bytes, errors: IO[bytes]) -> None:
        self.host = host
        self._inbox: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._writing = threading.Lock()
        # A file: a connection that ssh(1) keeps for others (ControlPersist) would keep a pipe open.
        self._errors = errors
        self._heard = time.monotonic()
        self._greeted = False
        # Runs in a row share a connection. Its socket is in a folder of the user's own.
        kept = cache_directory()
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        shared = ("-o", "ControlMaster=auto", "-o", f"ControlPath={kept}/%C", "-o", "ControlPersist=10")
        # No option may follow the destination, and the remote shell may be any.
        # A shell receives the agent and becomes it.
        start = (
            'd=$(mktemp -d "${TMPDIR:-/tmp}/sojourn-agent.XXXXXX") && a="$d/agent" || exit 1; '
            f'head -c {len(agent)} > "$a" && [ "$(wc -c < "$a")" -eq {len(agent)} ] '
            '&& chmod 700 "$a" && "$a" --version > /dev/null '
            f'|| {{ rm -rf "$d"; exit 1; }}; exec "$a" machine {shlex.join(host.wires)}'
        )
        self._process = subprocess.Popen(
            [programs.SSH, *_SSH, *shared, host.ssh, f"exec sh -c {shlex.quote(start)}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        threading.Thread(target=self._hear, daemon=True).start()
        threading.Thread(target=self._copy, args=(agent,), daemon=True).start()

    def _hear(self) -> None:
        out = self._process.stdout
        assert out is not None
        with suppress(ValueError, OSError):
            for line in out:
                message = json.loads(line)
                self._greeted = True
                if "recording" in message:
                    message["recording"] = out.read(message["recording"])
                self._inbox.put(message)
        self._inbox.put(None)

    def _copy(self, agent: bytes) -> None:
        """Sends the agent. What the connection takes is a sign of life: a host or its line may be slow."""
        for begin in range(0, len(agent), PIECE):
            self._write(agent[begin : begin + PIECE])
            self._heard = time.monotonic()

    def _write(self, data: bytes) -> None:
        # What the connection does not take is told by its end.
        with self._writing, suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(data)
            self._process.stdin.flush()

    def tell(self, message: object) -> None:
        """Tells the agent something."""
        self._heard = time.monotonic()
        self._write(json.dumps(message).encode() + b"\n")

    def beat(self) -> None:
        """Gives the agent a sign of life, once it has been copied: it may wait for that of a slower host."""
        if self._greeted:
            self._write(b"\n")

    def hear(self, key: str, monitor: _core.Monitor) -> Any:
        """The value of the next message with a key; errors as for ``gathered``."""
        return gathered([self], key, monitor)[0]

    def take(self, key: str, monitor: _core.Monitor) -> Any:
        """As ``hear``; None if there is none now. Reports the seconds of a run."""
        try:
            message = self._inbox.get(timeout=MOMENT_S)
        except Empty:
            if time.monotonic() > self._heard + ANSWER_S:
                raise LinuxError(f"{self.host.name}: says nothing for {ANSWER_S:.0f} s") from None
            return None
        self._heard = time.monotonic()
        if message is None:
            self._errors.seek(0)
            said = [line.strip() for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
            last = said[-1].removeprefix("sojourn-agent: ") if said else "the connection has ended"
            raise LinuxError(f"{self.host.name}: {last} (ssh {self.host.ssh})")
        if "error" in message:
            raise LinuxError(f"{self.host.name}: {message['error']}")
        if "second" in message and self.host.role == "router":
            monitor.report(float(message["second"]))
        return message.get(key)

    def ask(self, message: object, key: str, monitor: _core.Monitor) -> Any:
        """Tells the agent something, and waits for its answer; errors as for ``gathered``."""
        return answers([self], message, key, monitor)[0]

    def end(self) -> None:
        """Lets the agent clean up and end."""
        with self._writing, suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def wait(self) -> None:
        """Waits until it has."""
        try:
            self._process.wait(CLEAN_UP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def gathered(connections: list[Connection], key: str, monitor: _core.Monitor) -> list[Any]:
    """The value of the next message with a key from each agent.

    Raises LinuxError if an agent failed or is silent, or its connection has ended, and Cancelled.
    """
    found: dict[int, Any] = {}
    while len(found) < len(connections):
        for number, one in enumerate(connections):
            if monitor.cancelled:
                raise _core.Cancelled("cancelled")
            value = None if number in found else one.take(key, monitor)
            if value is not None:
                found[number] = value
    return [found[number] for number in range(len(connections))]


def answers(connections: list[Connection], message: object, key: str, monitor: _core.Monitor) -> list[Any]:
    """Tells all agents something, and waits for their answers; errors as for ``gathered``."""
    for one in connections:
        one.tell(message)
    return gathered(connections, key, monitor)


@contextmanager
def connected(lab: Lab, monitor: _core.Monitor, hosts: list[Host] | None = None) -> Iterator[list[Connection]]:
    """The agents of a testbed's hosts. Afterwards, in every case, they have cleaned up and ended.

    Raises ExperimentError if a host cannot be reached, or is not root's, and Cancelled if the monitor was cancelled.
    """
    agent = programs.require_agent().read_bytes()
    programs.require(programs.SSH)
    connections: list[Connection] = []
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_S):
            for one in connections:
                one.beat()

    with ExitStack() as stack:
        try:
            connections.extend(
                Connection(host, agent, stack.enter_context(tempfile.TemporaryFile()))
                for host in (lab.hosts if hosts is None else hosts)
            )
            threading.Thread(target=beat, daemon=True).start()
            for one in connections:
                try:
                    one.hear("hello", monitor)
                except LinuxError as error:
                    raise _core.ExperimentError(f"{lab.path}: {error}") from None
            yield connections
        finally:
            over.set()
            for one in connections:
                one.end()
            for one in connections:
                one.wait()


def lacks(host: Host, seen: dict[str, Any], frame: int = 0) -> list[dict[str, str]]:
    """``what`` a host lacks, and the ``remedy``, from what its agent tells; a frame has up to ``frame`` bytes."""
    found = [
        {"what": f"its kernel {seen['kernel']} has no {part}", "remedy": f"modprobe {part}, or a kernel that has it"}
        for part in seen["lacking"]
    ]
    for name in host.wires:
        wire = seen["wires"][name]
        if wire is None:
            remedy = "ip -brief link shows those that there are"
            found.append({"what": f"there is no interface {name}", "remedy": remedy})
        elif wire["mtu"] + 14 < frame:
            what = f"{name} takes packets of {wire['mtu']} B, the file's are larger"
            found.append({"what": what, "remedy": f"ip link set {name} mtu {frame - 14}"})
    return found


def examined(lab: Lab, host: Host) -> dict[str, Any]:
    """Whether a host can be reached, what it lacks, and what is there."""
    try:
        with connected(lab, _core.Monitor(), [host]) as (connection,):
            wanted = {"disciplines": [*NEEDED, *OTHERS], "controls": []}
            seen = connection.ask({"look": wanted}, "seen", _core.Monitor())
    except (_core.ExperimentError, LinuxError) as error:
        what = str(error).removeprefix(f"{lab.path}: ").removeprefix(f"{host.name}: ")
        remedy = f"ssh -o BatchMode=yes {host.ssh} id -u must print 0: see ssh-copy-id(1)"
        return {"name": host.name, "role": host.role, "lacks": [{"what": what, "remedy": remedy}]}
    others = {f"sch_{kind}" for kind in OTHERS}
    seen["without"] = [part for part in seen["lacking"] if part in others]
    seen["lacking"] = [part for part in seen["lacking"] if part not in others]
    return {"name": host.name, "role": host.role, "lacks": lacks(host, seen), **seen}


class Offset(msgspec.Struct, frozen=True, order=True):
    """What a host's monotonic clock shows beyond ours, and when it was compared. The least is the surest."""

    uncertain_ns: int
    ns: int
    at_ns: int

    @classmethod
    def ask(cls, connection: Connection, monitor: _core.Monitor) -> Offset:
        """Asks a host for the time: the quickest answer counts."""

        def once() -> Offset:
            before = time.monotonic_ns()
            there = connection.ask("clock", "clock", monitor)
            after = time.monotonic_ns()
            return cls((after - before) // 2, there - (before + after) // 2, after)

        answers = [once() for _ in range(ASKED)]
        while min(answers).uncertain_ns > OFFSET_S * 1e9 and len(answers) < MOST_ASKED:
            answers.append(once())
        return min(answers)

    def drifts(self, later: Offset) -> str | None:
        """How the clock has drifted until a later comparison, if more than a clock does."""
        span = later.at_ns - self.at_ns
        moved = later.ns - self.ns
        if abs(moved) <= self.uncertain_ns + later.uncertain_ns + DRIFT * span:
            return None
        return f"its clock has moved by {moved / 1e6:.1f} ms in {span / 1e9:.1f} s beside ours"


def check(lab: Lab, plan: _core.Plan) -> None:
    """Checks a testbed before the runs of a plan. Raises ExperimentError, which names the host or the link."""
    monitor = _core.Monitor()
    # One of each cell and queue: seeds differ in nothing that matters here.
    specs = {(cell, queue): number for number, (cell, queue, _, _) in enumerate(plan.jobs)}
    jobs = [_core.linux_job(plan[number], "sj") for number in specs.values()]
    parts = [[json.loads(part) for part in _core.linux_parts(job, "sj", lab.machines)] for job in jobs]
    rate, frame = (max(of[0][key] for of in parts) for key in ("bps", "frame"))
    with connected(lab, monitor) as connections:
        try:
            for one, own in zip(connections, zip(*parts, strict=True), strict=True):
                for lack in lacks(one.host, one.ask({"look": _needs(own)}, "seen", monitor), frame):
                    raise lab.refused(one.host, f"{lack['what']}: {lack['remedy']}")
            first = [Offset.ask(one, monitor) for one in connections]
            answers(connections, "prepare", "prepared", monitor)
            _listen(lab, connections, rate, monitor)
            for sending, receiving in _links(connections):
                _probe(lab, sending, receiving, (rate, frame), monitor)
            for one, before in zip(connections, first, strict=True):
                _compare(lab, one.host, before, Offset.ask(one, monitor))
        except LinuxError as error:
            raise _core.ExperimentError(f"{lab.path}: {error}") from None


def _needs(parts: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """The disciplines and the congestion controls that a host's parts of jobs need of its kernel."""
    added = [step["action"].get("Add") for part in parts for step in part["setup"]]
    flows = [flow["tcp"] for part in parts for flow in part["flows"]]
    return {
        "disciplines": sorted({one["kind"] for one in added if one and one["part"] == "Discipline"}),
        "controls": sorted({tcp["congestion_control"] for tcp in flows if tcp}),
    }


def _listen(lab: Lab, connections: list[Connection], rate: int, monitor: _core.Monitor) -> None:
    """Checks that nothing else passes the interfaces."""
    passed = answers(connections, {"quiet": {"ms": QUIET_MS}}, "passing", monitor)
    for one, counts in zip(connections, passed, strict=True):
        for wire, passing in zip(one.host.wires, counts, strict=True):
            bps = passing * 8000 // QUIET_MS
            if bps > FOREIGN * rate:
                raise lab.refused(
                    one.host, f"{wire}: other traffic passes, {_mbps(bps)}; must be below {_mbps(FOREIGN * rate)}"
                )


def _links(connections: list[Connection]) -> Iterator[tuple[tuple[Connection, str], tuple[Connection, str]]]:
    """The links between hosts in both directions: who sends and who receives, with their interfaces."""
    (router,) = (one for one in connections if one.host.role == "router")
    for one in connections:
        if one is router:
            continue
        inwards = one.host.role == "sender"
        own, of_router = (one.host.out, router.host.in_) if inwards else (one.host.in_, router.host.out)
        assert own is not None and of_router is not None
        ends = ((one, own), (router, of_router))
        yield from (ends, ends[::-1])


def _probe(
    lab: Lab,
    sending: tuple[Connection, str],
    receiving: tuple[Connection, str],
    largest: tuple[int, int],
    monitor: _core.Monitor,
) -> None:
    """Checks that a link carries more than the highest rate of the queues, so that these are the only bottleneck."""
    rate, frame = largest
    common = {"device": "probe", "mtu": frame - 14}
    ends = [
        {"namespace": f"sj-probe{k}", "address": f"10.8.0.{k + 1}", "mac": [2, 0, 0, 8, 0, k + 1], **common}
        for k in (0, 1)
    ]
    at = [
        {"end": own, "other": other, "wire": wire}
        for own, other, wire in ((*ends, sending[1]), (*ends[::-1], receiving[1]))
    ]
    names = f"{sending[0].host.name} {sending[1]}", f"{receiving[0].host.name} {receiving[1]}"
    for _ in range(ATTEMPTS):
        receiving[0].ask({"listen": {"at": at[1], "ms": PROBE_MS + 800}}, "listening", monitor)
        sent = sending[0].ask({"send": {"at": at[0], "bps": int(ABOVE * rate), "ms": PROBE_MS}}, "probed", monitor)
        arrived = receiving[0].hear("probed", monitor)
        if arrived["datagrams"] == 0:
            raise _core.ExperimentError(
                f"{lab.path}: nothing that {names[0]} sends arrives at {names[1]}: is that its link?"
            )
        # What a host sends too slowly is no bottleneck of the link.
        enough = arrived["bytes"] >= sent["bytes"] * CARRIED / ABOVE
        if enough and arrived["span_ns"] <= sent["span_ns"] * 1.2 + 20e6:
            return
    carried = arrived["bytes"] * 8e9 / max(arrived["span_ns"], sent["span_ns"])
    raise _core.ExperimentError(
        f"{lab.path}: {names[0]} to {names[1]} carries {_mbps(carried)}; must be {_mbps(CARRIED * rate)} or more, "
        f"so that the file's queue of {_mbps(rate)} is the only bottleneck"
    )


def _compare(lab: Lab, of: Host, before: Offset, after: Offset) -> None:
    """Checks that a clock is known well enough, and runs like ours."""
    if after.uncertain_ns > OFFSET_S * 1e9:
        known = f"its clock is known up to {after.uncertain_ns / 1e6:.1f} ms"
        raise lab.refused(of, f"{known}; must be {OFFSET_S * 1e3:.0f} ms")
    if drift := before.drifts(after):
        raise lab.refused(of, f"{drift}; must be {DRIFT * 1e6:.0f} µs in a second at most")


def _mbps(bps: float) -> str:
    return f"{bps / 1e6:.3g} Mbit/s"


def release(lab: Lab) -> str:
    """The release of the router's kernel; errors as for ``run``."""
    monitor = _core.Monitor()
    with connected(lab, monitor, [one for one in lab.hosts if one.role == "router"]) as (router,):
        return str(router.ask({"look": {"disciplines": [], "controls": []}}, "seen", monitor)["kernel"])


def run(lab: Lab, job_json: str, prefix: str, monitor: _core.Monitor) -> bytes:
    """Runs a job on a testbed; returns its recording. In every case the hosts are as before afterwards.

    Raises ExperimentError if a host cannot be reached, LinuxError if the run failed, and Cancelled.
    """
    parts = _core.linux_parts(job_json, prefix, lab.machines)
    with alone(monitor, own_lock()), connected(lab, monitor) as connections:
        answers(connections, "prepare", "prepared", monitor)
        for one, part in zip(connections, parts, strict=True):
            one.tell({"run": json.loads(part)})
        earliest = gathered(connections, "ready", monitor)
        offsets = [Offset.ask(one, monitor) for one in connections]
        # The host that is ready last decides; in our time.
        zero = max(there - offset.ns for there, offset in zip(earliest, offsets, strict=True))
        zero = max(zero, time.monotonic_ns()) + int(AHEAD_S * 1e9)
        for one, offset in zip(connections, offsets, strict=True):
            one.tell({"begin": zero + offset.ns})
        recordings = gathered(connections, "recording", monitor)
        for one, offset in zip(connections, offsets, strict=True):
            drift = offset.drifts(Offset.ask(one, monitor))
            if drift is not None:
                raise LinuxError(f"{one.host.name}: {drift}: the run's times are wrong")
        return _core.linux_joined(job_json, prefix, lab.machines, recordings)
