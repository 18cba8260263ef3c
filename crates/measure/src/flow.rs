//! The figures of one flow.

use serde::Serialize;

use crate::distribution::Spread;

/// The figures of one flow. What only few kinds of traffic have stands apart: there may be 100,000 flows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Flow {
    /// Its group's index in `traffic` of experiment.json (tests such as `rrul` are several groups there).
    pub traffic: usize,
    /// Its index in the group.
    pub flow: u32,
    /// Its group's name.
    pub name: String,
    /// The total that its group belongs to, if any.
    #[serde(skip)]
    pub total: Option<String>,
    /// The kind of traffic.
    pub kind: &'static str,
    /// Whether it runs over TCP.
    #[serde(skip)]
    pub is_over_tcp: bool,
    /// The direction of its data: that of the only link, and in a network of several `down` from the traffic's `from` to
    /// its `to`.
    pub direction: &'static str,
    /// The DiffServ code point of its packets.
    pub dscp: u8,
    /// Payload that TCP delivered in order after the warm-up, or that datagrams brought; what waits behind a lost segment
    /// counts when that arrives, so that after a short warm-up the goodput can exceed the rate of the link. It is over the
    /// time after the warm-up in which the flow sends, from its `start`, of a range such as `"0..1 s"` the beginning, to
    /// its `stop`, and counts what arrives in that time, not what is on its way or queued at the `stop`: the goodputs of
    /// flows that send at different times do not add up to a rate of the link.
    pub goodput_bps: f64,
    /// Payload sent, without retransmissions, over the whole run.
    pub sent_bytes: u64,
    /// Payload received in order, over the whole run.
    pub received_bytes: u64,
    /// Segments retransmitted, over the whole run.
    pub retransmits: u64,
    /// Packets of its data that arrived at the first queue of their route, over the whole run.
    pub bottleneck_packets: u64,
    /// Packets of its data that a queue dropped, or that Wi-Fi lost on the air, over the whole run.
    pub dropped_packets: u64,
    /// Packets of its data that left the last queue of their route marked, over the whole run.
    pub marked_packets: u64,
    /// Network power: goodput divided by mean round-trip time; `None` without round-trip times.
    pub power_bps_per_s: Option<f64>,
    /// Round-trip times after the warm-up: TCP's samples, or the echoes of a ping.
    pub rtt_ms: Spread,
    /// One-way delays after the warm-up: of datagrams, and of TCP's segments if `record.one_way` is set. They are queueing
    /// and `link.delay`; the rest of the base RTT is on the way back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_way_ms: Option<Box<Spread>>,
    /// Their jitter after the warm-up: the running estimate (RFC 3550 §6.4.1) after each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<Box<Spread>>,
    /// Their delay variation after the warm-up: delay above the smallest (RFC 5481 §4.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdv_ms: Option<Box<Spread>>,
    /// Opinion score of a call (ITU-T G.107), of its mean delay, with half of its base RTT each way, and its losses after the
    /// warm-up. Jitter, which a playout buffer turns into delay and loss, does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// Datagrams that a queue dropped or a link lost, and echo requests so left without a reply, over the whole run; those
    /// still on their way when it ends are not lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_packets: Option<u64>,
    /// Completion times of files, or of the PackMime model's requests, finished after the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_ms: Option<Box<Spread>>,
    /// Load times of pages finished after the warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_load_ms: Option<Box<Spread>>,
    /// Delays of a video call's frames that arrived whole after the warm-up: from when a frame is taken to the arrival of
    /// its last packet, with the wait for the pacer, the queues and `link.delay`; the rest of the base RTT is on the way
    /// back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_ms: Option<Box<Spread>>,
    /// The figures of a video player, or of a video call, whose frames are the segments and whose freezes are the stalls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub video: Option<Box<Video>>,
}

impl Flow {
    /// False for a direction of a program's connection that has only acknowledged.
    pub fn has_data(&self) -> bool {
        self.kind != "tcp" || self.sent_bytes > 0
    }
}

/// The figures of a player of adaptive video, over the whole run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Video {
    /// Segments received.
    pub segments: u64,
    /// Their mean media rate.
    pub media_rate_bps: Option<f64>,
    /// How often the media rate changed.
    pub switches: u64,
    /// From the start to the first picture.
    pub startup_ms: Option<f64>,
    /// How often playback stalled.
    pub stalls: u64,
    /// How long playback stalled in total.
    pub stalled_ms: f64,
}
