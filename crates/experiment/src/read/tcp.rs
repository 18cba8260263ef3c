//! The options of a TCP flow.

use crate::error::ReadError;
use crate::form::keys;
use crate::forms::{Bytes, Flag, Maybe, Named, Span, Whole, Word};
use crate::model::{Recovery, Tcp};
use crate::section::Section;

keys! {
    Tcp {
        /// Congestion control.
        congestion_control as "tcp" = CONGESTION_CONTROL, Is("cubic");
        /// Negotiate ECN (RFC 3168).
        ecn = Flag, Is("false");
        /// Send a lost SYN again without asking for ECN (RFC 3168), as Linux does since 4.2.
        ecn_fallback = Flag, Is("true");
        /// Back off less for a mark than for a loss (RFC 8511); needs ecn.
        abe = Flag, Is("false");
        /// Selective acknowledgements (RFC 2018).
        sack = Flag, Is("true");
        /// How losses are found and repaired: by time and probes, as Linux since 4.18 (RACK-TLP, RFC 8985), or by
        /// RFC 6675 alone, as older simulators (without SACK: RFC 6582).
        recovery = RECOVERY, Is("rack");
        /// Least retransmission timeout; on Linux, and so with rack, what it exceeds the smoothed RTT by. RFC 6298 has
        /// 1 s.
        min_rto = Span::AboveZero, Is("200 ms");
        /// Acknowledge each segment at the beginning, as Linux does; false: every second from the first on (RFC 5681).
        quickack = Flag, Is("true");
        /// Segments that an acknowledgement waits for, 40 ms at most, once those at the beginning are over.
        ack_every = Whole { from: 1, to: 1000 }, Is("2");
        /// Send pieces of a millisecond's worth, two segments at least, as Linux does; false: each as the window opens.
        gso = Flag, Is("true");
        /// Keep no more than some milliseconds' worth in the host's own queue (`access`), as Linux does; false: all that
        /// the window allows.
        small_queues = Flag, Is("true");
        /// Initial window in segments (RFC 6928).
        initial_window = Whole { from: 1, to: 1000 }, Is("10");
        /// Payload of a full segment; the MTU is 52 bytes more (IPv4, TCP with timestamps).
        mss = Bytes { from: 64, to: 65_495 }, Is("1448 B");
        /// Largest receive window.
        window = Maybe(Bytes { from: 64, to: 1_000_000_000_000 }), Words("never in the way");
    }
    ; check check
}

const CONGESTION_CONTROL: Named = Named {
    what: "congestion control",
    known: |names| {
        let known = names.congestion_controls.iter();
        known.map(String::as_str).collect()
    },
};

const RECOVERY: Word<Recovery> = Word(&[
    (Recovery::Rack.name(), Recovery::Rack),
    (Recovery::Rfc6675.name(), Recovery::Rfc6675),
]);

fn check(tcp: &Tcp, section: &Section<'_>) -> Result<(), ReadError> {
    if let (true, false, Some(abe)) = (tcp.abe, tcp.ecn, section.given("abe")) {
        return Err(abe.error("got true; needs ecn = true, since it answers marks"));
    }
    let below_mss = tcp.window.is_some_and(|window| window < u64::from(tcp.mss));
    if let (true, Some(given)) = (below_mss, section.given("window")) {
        return Err(given.refuse(format!("at least a segment, mss (\"{} B\")", tcp.mss)));
    }
    Ok(())
}
