"""summary.json as types. Units are in the key names; the document is described in docs/results.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypeAlias, TypedDict

FORMAT = 1
"""Version of the layout; incremented when the meaning of a key changes."""

DIRECTIONS: tuple[Literal["down"], Literal["up"]] = ("down", "up")
"""The keys of a link's queues."""


# Readers check ``n`` of a distribution first: this distinguishes damaged files from empty distributions.
if TYPE_CHECKING:
    Statistic: TypeAlias = float
else:
    Statistic = float | None


# Generated from the structs of a run's result in Rust by `make docs`.

QUANTILES: dict[str, float] = {
    "min": 0.0,
    "p1": 0.01,
    "p5": 0.05,
    "p10": 0.1,
    "p25": 0.25,
    "p50": 0.5,
    "p75": 0.75,
    "p90": 0.9,
    "p95": 0.95,
    "p99": 0.99,
    "p99_9": 0.999,
    "max": 1.0,
}
"""The quantiles of a distribution in a summary, by key."""


class Distribution(TypedDict):
    """Quantiles of a distribution."""

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
    """The main quantiles of a distribution."""

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
    """The figures of one of several queues of a discipline."""

    sojourn_ms: Distribution
    delivered_packets: int
    dropped_packets: int
    marked: int
    threshold_bps: NotRequired[int]
    target_ms: NotRequired[float]
    interval_ms: NotRequired[float]


class Bottleneck(TypedDict):
    """The figures of a queue."""

    sojourn_ms: Distribution
    startup_peak_ms: float
    utilization: float
    delivered_packets: int
    delivered_bytes: int
    dropped_aqm: int
    dropped_overflow: int
    marked: int
    lost_packets: NotRequired[int]
    duplicated_packets: NotRequired[int]
    drop_delay_ms: dict[str, Spread]
    loss_events: int
    loss_synchronization: float | None
    queues: NotRequired[dict[str, InnerQueue]]


class Exchanged(TypedDict):
    """The exchanges between a station and the access point."""

    airtime_share: float
    aggregate_frames: float | None
    retries: int
    goodput_bps: float
    latency_ms: Distribution
    lost_packets: int


class Station(TypedDict):
    """A station's figures."""

    airtime_share: float
    aggregate_frames: float | None
    retries: int
    goodput_bps: float
    latency_ms: Distribution
    lost_packets: int
    down: Exchanged
    up: Exchanged


class Medium(TypedDict):
    """The uses of the medium besides the stations' exchanges."""

    idle_share: float
    collision_share: float
    collisions: int


class Link(TypedDict):
    """The figures of a link."""

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
    """The figures of one flow."""

    traffic: int
    flow: int
    name: str
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
    """The figures of a traffic group's flows in one direction."""

    traffic: int
    name: str
    total: NotRequired[str]
    kind: str
    direction: str
    flows: int
    goodput_bps: float
    jain_goodput: float | None
    rtt_ms: Spread
    one_way_ms: NotRequired[Spread]
    completion_ms: NotRequired[Spread]
    page_load_ms: NotRequired[Spread]
    frame_ms: NotRequired[Spread]
    lost_packets: NotRequired[int]
    mos: NotRequired[float]
    qoo: NotRequired[float]
    video: NotRequired[Video]


class Lateness(TypedDict):
    """A distribution of delays in milliseconds."""

    n: int
    p50: float
    p99: float
    p99_9: float
    max: float


class Run(TypedDict):
    """The result of one run."""

    queue: str
    label: str
    seed: int
    bottleneck: dict[str, Bottleneck]
    bottleneck_link: str
    links: dict[str, Link]
    flows: list[Flow]
    groups: list[Group]
    jain_goodput: float | None
    jain_drop_share: float | None
    power_bps_per_s: float | None
    transferred_kilobytes: float
    timeouts: int
    lost_packets: NotRequired[dict[str, int]]
    simulated_s: float
    wall_s: float
    events: int
    set: dict[str, object]
    kernel: NotRequired[str]
    lateness_ms: NotRequired[Lateness]
    path_cpu_s: NotRequired[float]
    notes: NotRequired[list[str]]
    invalid: NotRequired[list[str]]


# Until here.


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
