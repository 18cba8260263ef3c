//! The options of a TCP flow.

use crate::error::ReadError;
use crate::form::{AnyKey, Default, Key};
use crate::forms::{Bytes, Flag, Named, Span, Whole, Word};
use crate::model::{Recovery, Tcp};
use crate::section::Section;

static TCP: Key<Named> = Key {
    name: "tcp",
    form: Named {
        what: "congestion control",
        known: |names| {
            names
                .congestion_controls
                .iter()
                .map(String::as_str)
                .collect()
        },
    },
    default: Default::Is("cubic"),
    doc: "Congestion control.",
};
static ECN: Key<Flag> = Key {
    name: "ecn",
    form: Flag,
    default: Default::Is("false"),
    doc: "Negotiate ECN (RFC 3168).",
};
static ECN_FALLBACK: Key<Flag> = Key {
    name: "ecn_fallback",
    form: Flag,
    default: Default::Is("true"),
    doc: "Send a lost SYN again without asking for ECN (RFC 3168), as Linux does since 4.2.",
};
static ABE: Key<Flag> = Key {
    name: "abe",
    form: Flag,
    default: Default::Is("false"),
    doc: "Back off less for a mark than for a loss (RFC 8511); needs ecn.",
};
static SACK: Key<Flag> = Key {
    name: "sack",
    form: Flag,
    default: Default::Is("true"),
    doc: "Selective acknowledgements (RFC 2018).",
};
static RECOVERY: Key<Word<Recovery>> = Key {
    name: "recovery",
    form: Word(&[
        (Recovery::Rack.name(), Recovery::Rack),
        (Recovery::Rfc6675.name(), Recovery::Rfc6675),
    ]),
    default: Default::Is("rack"),
    doc: "How losses are found and repaired: by time and probes, as Linux since 4.18 (RACK-TLP, RFC 8985), or by RFC 6675 alone, as older simulators (without SACK: RFC 6582).",
};
static MIN_RTO: Key<Span> = Key {
    name: "min_rto",
    form: Span::AboveZero,
    default: Default::Is("200 ms"),
    doc: "Least retransmission timeout; on Linux, and so with rack, what it exceeds the smoothed RTT by. RFC 6298 has 1 s.",
};
static QUICKACK: Key<Flag> = Key {
    name: "quickack",
    form: Flag,
    default: Default::Is("true"),
    doc: "Acknowledge each segment at the beginning, as Linux does; false: every second from the first on (RFC 5681).",
};
static ACK_EVERY: Key<Whole> = Key {
    name: "ack_every",
    form: Whole { from: 1, to: 1000 },
    default: Default::Is("2"),
    doc: "Segments that an acknowledgement waits for, 40 ms at most, once those at the beginning are over.",
};
static GSO: Key<Flag> = Key {
    name: "gso",
    form: Flag,
    default: Default::Is("true"),
    doc: "Send pieces of a millisecond's worth, two segments at least, as Linux does; false: each as the window opens.",
};
static SMALL_QUEUES: Key<Flag> = Key {
    name: "small_queues",
    form: Flag,
    default: Default::Is("true"),
    doc: "Keep no more than some milliseconds' worth in the host's own queue (`access`), as Linux does; false: all that the window allows.",
};
static INITIAL_WINDOW: Key<Whole> = Key {
    name: "initial_window",
    form: Whole { from: 1, to: 1000 },
    default: Default::Is("10"),
    doc: "Initial window in segments (RFC 6928).",
};
static MSS: Key<Bytes> = Key {
    name: "mss",
    form: Bytes {
        from: 64,
        to: 65_495,
    },
    default: Default::Is("1448 B"),
    doc: "Payload of a full segment; the MTU is 52 bytes more (IPv4, TCP with timestamps).",
};
static WINDOW: Key<Bytes> = Key {
    name: "window",
    form: Bytes {
        from: 64,
        to: 1_000_000_000_000,
    },
    default: Default::Words("never in the way"),
    doc: "Largest receive window.",
};

/// The keys of every kind of traffic that uses TCP.
pub(super) static KEYS: &[&dyn AnyKey] = &[
    &TCP,
    &ECN,
    &ECN_FALLBACK,
    &ABE,
    &SACK,
    &RECOVERY,
    &MIN_RTO,
    &QUICKACK,
    &ACK_EVERY,
    &GSO,
    &SMALL_QUEUES,
    &INITIAL_WINDOW,
    &MSS,
    &WINDOW,
];

/// Reads the options from the table of a traffic group.
///
/// # Errors
/// As each key; or `abe` without `ecn`, or a window that is smaller than a segment.
pub(super) fn read(section: &Section<'_>) -> Result<Tcp, ReadError> {
    let tcp = Tcp {
        congestion_control: section.get(&TCP)?,
        ecn: section.get(&ECN)?,
        ecn_fallback: section.get(&ECN_FALLBACK)?,
        abe: section.get(&ABE)?,
        sack: section.get(&SACK)?,
        recovery: section.get(&RECOVERY)?,
        min_rto: section.get(&MIN_RTO)?,
        quickack: section.get(&QUICKACK)?,
        ack_every: section.get(&ACK_EVERY)? as u32,
        gso: section.get(&GSO)?,
        small_queues: section.get(&SMALL_QUEUES)?,
        initial_window: section.get(&INITIAL_WINDOW)? as u32,
        mss: section.get(&MSS)? as u32,
        window: section.find(&WINDOW)?,
    };
    if let (true, false, Some(abe)) = (tcp.abe, tcp.ecn, section.given(ABE.name)) {
        return Err(abe.error("got true; needs ecn = true, since it answers marks"));
    }
    let below_mss = tcp.window.is_some_and(|window| window < u64::from(tcp.mss));
    if let (true, Some(given)) = (below_mss, section.given(WINDOW.name)) {
        return Err(given.refuse(format!("at least a segment, mss (\"{} B\")", tcp.mss)));
    }
    Ok(tcp)
}
