"""A testbed's hosts: their file, and the agent on each of them over ssh."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any, Literal

import msgspec

from sojourn import _core
from sojourn.files import typed
from sojourn.linux import programs
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
    "prio",
    "pfifo",
    "red",
    "codel",
    "fq_codel",
    "pie",
    "fq_pie",
    "sfq",
    "choke",
    "sfb",
    "fq",
    "hhf",
    "cake",
    "dualpi2",
)
"""Those that some experiments need."""
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
        """Reads a testbed's file.

        Raises ExperimentError if it has an error; the message says where, what, and what is accepted.
        """
        try:
            data = typed.read_toml(path)
        except OSError as error:
            raise _core.ExperimentError(f"{path}: {error.strerror}") from None
        try:
            hosts = typed.convert(data, _File).host
            for number, host in enumerate(hosts):
                _check(host, f"host.{number}")
            _check_all(hosts)
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


def _check(host: Host, where: str) -> None:
    """Checks what the type of a host does not."""
    for key, text in (("name", host.name), ("ssh", host.ssh)):
        if not text or text.startswith("-") or not text.isprintable():
            raise ValueError(f'{where}: {key}: got "{text}"; must be a text that does not begin with "-"')
    for key, wire in (("in", host.in_), ("out", host.out)):
        wanted = key in _WIRES[host.role]
        if wanted and wire is None:
            raise ValueError(f'{where}: {key}: missing; must be an interface of a {host.role}, like "eth1"')
        if not wanted and wire is not None:
            raise ValueError(f"{where}: {key}: unknown key of a {host.role}; accepted: {', '.join(_WIRES[host.role])}")
        if wire is not None and (wire.startswith("-") or not _INTERFACE.fullmatch(wire)):
            raise ValueError(f'{where}: {key}: got "{wire}"; must be an interface, like "eth1"')


def _check_all(hosts: list[Host]) -> None:
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
        command = [*_SSH, *shared, host.ssh, f"exec sh -c {shlex.quote(_start(len(agent), host.wires))}"]
        self._process = subprocess.Popen(
            [programs.SSH, *command],
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
            raise LinuxError(f"{self.host.name}: {self._last_words()}")
        if "error" in message:
            raise LinuxError(f"{self.host.name}: {message['error']}")
        if "second" in message and self.host.role == "router":
            monitor.report(float(message["second"]))
        return message.get(key)

    def ask(self, message: object, key: str, monitor: _core.Monitor) -> Any:
        """Tells the agent something, and waits for its answer; errors as for ``hear``."""
        self.tell(message)
        return self.hear(key, monitor)

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        last = lines[-1].removeprefix("sojourn-agent: ") if lines else "the connection has ended"
        return f"{last} (ssh {self.host.ssh})"

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


def _start(length: int, wires: list[str]) -> str:
    """The command of a shell that receives the agent of so many bytes and becomes it."""
    return (
        'd=$(mktemp -d "${TMPDIR:-/tmp}/sojourn-agent.XXXXXX") && a="$d/agent" || exit 1; '
        f'head -c {length} > "$a" && [ "$(wc -c < "$a")" -eq {length} ] '
        '&& chmod 700 "$a" && "$a" --version > /dev/null '
        f'|| {{ rm -rf "$d"; exit 1; }}; exec "$a" machine {shlex.join(wires)}'
    )


def gathered(connections: list[Connection], key: str, monitor: _core.Monitor) -> list[Any]:
    """The value of the next message with a key from each agent.

    Raises LinuxError if an agent failed, says nothing, or its connection has ended, and Cancelled if the monitor was
    cancelled.
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
    """``what`` a host lacks, and the ``remedy``, from what its agent tells of it.

    ``frame``: bytes of the largest Ethernet frame to pass.
    """
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
