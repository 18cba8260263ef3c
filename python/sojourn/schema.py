"""summary.json as types. Units are in the key names; the document is described in docs/results.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypeAlias, TypedDict

FORMAT = 1
"""Version of the layout; incremented when the meaning of a key changes."""

QUANTILES: dict[str, float] = {
    "min": 0.0,
    "p1": 0.01,
    "p5": 0.05,
    "p10": 0.10,
    "p25": 0.25,
    "p50": 0.50,
    "p75": 0.75,
    "p90": 0.90,
    "p95": 0.95,
    "p99": 0.99,
    "p99_9": 0.999,
    "max": 1.0,
}
"""The quantiles of a distribution in a summary, by key."""


DIRECTIONS: tuple[Literal["down"], Literal["up"]] = ("down", "up")
"""The keys of a link's queues."""


# Readers check ``n`` of a distribution first: this distinguishes damaged files from empty distributions.
if TYPE_CHECKING:
    Statistic: TypeAlias = float
else:
    Statistic = float | None


class Distribution(TypedDict):
    """Summary of per-packet values, in the unit of its key. Without packets ``n`` is 0 and the rest null."""

    n: int
    mean: Statistic
    min: Statistic
    p1: Statistic
    p5: Statistic
    p10: Statistic
    p25: Statistic
    p50: Statistic
    p75: Statistic
    p90: Statistic
    p95: Statistic
    p99: Statistic
    p99_9: Statistic
    max: Statistic


class Spread(TypedDict):
    """The main quantiles of a distribution, in the unit of its key; null without values."""

    n: int
    mean: float | None
    min: float | None
    p5: float | None
    p25: float | None
    p50: float | None
    p75: float | None
    p95: float | None
    p99: float | None
    max: float | None


class InnerQueue(TypedDict):
    """One of several queues of a discipline. Counters cover the whole run."""

    sojourn_ms: Distribution
    delivered_packets: int
    dropped_packets: int
    marked: int
    threshold_bps: NotRequired[int]
    target_ms: NotRequired[float]
    interval_ms: NotRequired[float]


class Bottleneck(TypedDict):
    """One direction of the bottleneck. Counters cover the whole run."""

    sojourn_ms: Distribution
    startup_peak_ms: float
    utilization: float
    delivered_packets: int
    delivered_bytes: int
    dropped_aqm: int
    dropped_overflow: int
    marked: int
    lost_packets: NotRequired[int]
    """Of an impaired link: lost on the wire behind the queue."""
    duplicated_packets: NotRequired[int]
    drop_delay_ms: dict[str, Spread]
    loss_events: int
    loss_synchronization: float | None
    queues: NotRequired[dict[str, InnerQueue]]
    """Simulator only: ``l`` and ``c`` of dualpi2, CAKE's tins, ``sparse`` and ``bulk`` of flow queueing."""


class Exchanged(TypedDict):
    """The traffic between a Wi-Fi station and its access point. Counters cover the whole run."""

    airtime_share: float
    """The share of time of frames and their acknowledgements, without collisions."""
    aggregate_frames: float | None
    """Frames per transmission, the mean; null without transmissions."""
    retries: int
    goodput_bps: float
    """IP packets that were received, headers included."""
    lost_packets: int
    """Packets that left their queue and were never received."""
    latency_ms: Distribution
    """Time from a packet's arrival at its sender's queue until the receiver hands it up, after the warm-up."""


class Station(Exchanged):
    """A Wi-Fi station: both directions together, and each direction."""

    down: Exchanged
    up: Exchanged


class Medium(TypedDict):
    """The use of a medium besides the stations' frames; all shares together are 1."""

    idle_share: float
    collision_share: float
    collisions: int


class Link(TypedDict):
    """A link's queues by direction; for a Wi-Fi cell, also its stations and its medium."""

    down: NotRequired[Bottleneck]
    up: NotRequired[Bottleneck]
    stations: NotRequired[dict[str, Station]]
    medium: NotRequired[Medium]


class Video(TypedDict):
    """The figures of a player of adaptive video, over the whole run."""

    segments: int
    media_rate_bps: float | None
    switches: int
    startup_ms: float | None
    stalls: int
    stalled_ms: float


class Flow(TypedDict):
    """One flow: ``traffic`` is its group's index in experiment.json, ``flow`` its index in the group."""

    traffic: int
    flow: int
    name: str
    """Its group's name."""
    kind: str
    direction: str
    dscp: int
    goodput_bps: float
    sent_bytes: int
    received_bytes: int
    retransmits: int
    bottleneck_packets: int
    dropped_packets: int
    marked_packets: int
    power_bps_per_s: float | None
    rtt_ms: Spread
    one_way_ms: NotRequired[Spread]
    jitter_ms: NotRequired[Spread]
    pdv_ms: NotRequired[Spread]
    mos: NotRequired[float]
    lost_packets: NotRequired[int]
    completion_ms: NotRequired[Spread]
    page_load_ms: NotRequired[Spread]
    frame_ms: NotRequired[Spread]
    video: NotRequired[Video]


class Group(TypedDict):
    """The flows of a traffic group in one direction; distributions cover all their values together."""

    traffic: int
    name: str
    total: NotRequired[str]
    """The name of the group of groups that tables show in its place."""
    kind: str
    direction: str
    flows: int
    goodput_bps: float
    """The sum over the flows."""
    jain_goodput: float | None
    rtt_ms: Spread
    one_way_ms: NotRequired[Spread]
    completion_ms: NotRequired[Spread]
    page_load_ms: NotRequired[Spread]
    frame_ms: NotRequired[Spread]
    lost_packets: NotRequired[int]
    """The sum over the flows."""
    mos: NotRequired[float]
    """The mean over the flows."""
    qoo: NotRequired[float]
    """Quality of Outcome, from 0 to 100."""
    video: NotRequired[Video]


class Lateness(TypedDict):
    """How late packets were delivered: from the instant at which a packet should have arrived."""

    n: int
    p50: float
    p99: float
    p99_9: float
    max: float


class Run(TypedDict):
    """One run: a queue under one seed in one cell of the sweep."""

    queue: str
    label: str
    seed: int
    set: dict[str, object]
    bottleneck: dict[str, Bottleneck]
    """The first link under test, by direction."""
    bottleneck_link: str
    """Its name."""
    links: dict[str, Link]
    """Every link by name."""
    flows: list[Flow]
    groups: list[Group]
    """Per traffic group and direction."""
    jain_goodput: float | None
    jain_drop_share: float | None
    power_bps_per_s: float | None
    transferred_kilobytes: float
    lost_packets: NotRequired[dict[str, int]]
    """Of impaired directions without a queue, by link and direction: ``link/up``."""
    timeouts: int
    """Retransmission timeouts of all ends of TCP connections, including those of a SYN or SYN-ACK."""
    simulated_s: float
    wall_s: float
    events: int
    kernel: NotRequired[str]
    """Linux and real packets only: the kernel's release."""
    lateness_ms: NotRequired[Lateness]
    path_cpu_s: NotRequired[float]
    """Real packets only."""
    notes: NotRequired[list[str]]
    """What the user should know; absent if there is nothing."""
    invalid: NotRequired[list[str]]
    """Linux and real packets only: why the run is invalid; absent if it is valid."""


class Until(TypedDict):
    """The requested precision."""

    metric: str
    share: float
    """The largest half width of the interval of the metric's mean, as a share of that mean."""
    missed: list[str]
    """The cells that did not reach this precision, in words."""


class Summary(TypedDict):
    """The whole document."""

    format: int
    sojourn: str
    experiment: str
    backend: str
    runs: list[Run]
    partial: NotRequired[bool]
    planned_runs: NotRequired[int]
    until: NotRequired[Until]
