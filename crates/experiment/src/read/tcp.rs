//! The options of a TCP flow.

use crate::error::ReadError;
use crate::forms::{Bytes, Flag, Maybe, Named, Span, Whole, Word};
use crate::keys::keys;
use crate::model::{Recovery, Tcp};
use crate::section::Section;

keys! {
    Tcp {
        /// Congestion control.
        congestion_control as "tcp" = CONGESTION_CONTROL, Is("cubic");
        /// Negotiate ECN (RFC 3168); dctcp and prague do so in any case.
        ecn = Flag, Is("false");
        /// Report every mark (AccECN, RFC 9768), instead of one per round trip; needs ecn. Prague always does so.
        accecn = Flag, Is("false");
        /// Retransmit a lost SYN without requesting ECN (RFC 3168), as Linux does since 4.2.
        ecn_fallback = Flag, Is("true");
        /// Back off less for a mark than for a loss (RFC 8511); needs ecn.
        abe = Flag, Is("false");
        /// Prague's window grows on paths below 25 ms as if the RTT were 25 ms; false: by a segment per RTT, as in 2020.
        /// Other congestion controls ignore this key.
        rtt_independence = Flag, Is("true");
        /// Selective acknowledgements (RFC 2018).
        sack = Flag, Is("true");
        /// Loss detection and recovery: rack is RACK-TLP (RFC 8985), as in Linux since 4.18; rfc6675 is RFC 6675 alone,
        /// as in older simulators (without SACK: RFC 6582).
        recovery = RECOVERY, Is("rack");
        /// Minimum RTO; RFC 6298 has 1 s. With rack, as on Linux, the RTO exceeds the smoothed RTT by at least this.
        min_rto = Span::AboveZero, Is("200 ms");
        /// Acknowledge every segment at the start of a connection, as Linux does; false: delay ACKs from the start (RFC
        /// 5681).
        quickack = Flag, Is("true");
        /// Segments per delayed ACK (its timeout adapts from 40 to 200 ms), after the initial quick ACKs.
        ack_every = Whole { from: 1, to: 1000 }, Is("2");
        /// Send bursts of about a millisecond, at least two segments, as Linux does (segmentation offload); false: send
        /// each segment as soon as the window allows.
        gso = Flag, Is("true");
        /// Keep at most a few milliseconds of data in the host's own queue (`access`), as Linux does; false: only the
        /// window limits it.
        small_queues = Flag, Is("true");
        /// Initial window in segments (RFC 6928).
        initial_window = Whole { from: 1, to: 1000 }, Is("10");
        /// Payload of a full segment; the MTU is 52 bytes more (IPv4, TCP with timestamps).
        mss = Bytes { from: 64, to: 65_495 }, Is("1448 B");
        /// Largest receive window.
        window = Maybe(Bytes { from: 64, to: 1_000_000_000_000 }), Words("unlimited");
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

/// Congestion controls that are driven by marks and negotiate ECN in any case (RFC 8257 §3.4, RFC 9331 §4.3).
const ALWAYS_ECN: [&str; 2] = ["dctcp", "prague"];

fn check(tcp: &mut Tcp, section: &Section<'_>) -> Result<(), ReadError> {
    if ALWAYS_ECN.contains(&tcp.congestion_control.as_str()) {
        let control = &tcp.congestion_control;
        if let (false, Some(ecn)) = (tcp.ecn, section.given("ecn")) {
            let accepted = format!("true with {control}, which negotiates ECN in any case");
            return Err(ecn.refuse(accepted));
        }
        tcp.ecn = true;
    }
    if let (true, false, Some(abe)) = (tcp.abe, tcp.ecn, section.given("abe")) {
        return Err(abe.error("got true; needs ecn = true, since it responds to marks"));
    }
    if let (true, false, Some(accecn)) = (tcp.accecn, tcp.ecn, section.given("accecn")) {
        return Err(accecn.error("got true; needs ecn = true, whose marks it reports"));
    }
    let below_mss = tcp.window.is_some_and(|window| window < u64::from(tcp.mss));
    if let (true, Some(given)) = (below_mss, section.given("window")) {
        return Err(given.refuse(format!("at least a segment, mss (\"{} B\")", tcp.mss)));
    }
    Ok(())
}
