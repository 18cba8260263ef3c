//! The options of a TCP flow.

use serde_json::{Value as Json, json};

use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::forms::{Bytes, Decimal, Flag, Maybe, Named, Span, Whole, Word};
use crate::keys::keys;
use crate::model::{Abe, Recovery, Tcp};
use crate::names::Names;
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
        /// Share of the window that is kept on a loss, for reno, newreno and the variants of cubic.
        beta = Maybe(SHARE), Words("0.5 for reno, 0.7 for cubic");
        /// Back off less for a mark than for a loss (RFC 8511): true keeps 0.8 of reno's window and 0.85 of cubic's, a
        /// number another share; needs ecn, and a congestion control that has beta.
        abe = AbeForm, Is("false");
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
        /// Keep at most a few milliseconds of data in the host's own queue (`access`, or that of a station of Wi-Fi), as Linux
        /// does; without one, at most two bursts until all that arrives at an instant is handled; false: only the window
        /// limits it.
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

/// A share of the window.
const SHARE: Decimal = Decimal {
    above: 0.0,
    to: 0.99,
};

/// The congestion controls that keep a fixed share of their window, and so have `beta` and `abe`.
pub const LOSS_BASED: [&str; 6] = [
    "cubic",
    "cubic-2005",
    "cubic-hystart++",
    "cubic-nohystart",
    "newreno",
    "reno",
];

/// True or false, or the share that is kept on a mark.
struct AbeForm;

impl Form for AbeForm {
    type Out = Abe;

    fn read(&self, entry: &Entry<'_>) -> Result<Abe, ReadError> {
        match Flag.read(entry) {
            Ok(true) => Ok(Abe::Recommended),
            Ok(false) => Ok(Abe::Off),
            Err(_) => match SHARE.read(entry) {
                Ok(share) => Ok(Abe::Keeps(share)),
                Err(_) => Err(entry.refuse(self.accepts())),
            },
        }
    }

    fn write(&self, value: &Abe) -> Json {
        match value {
            Abe::Off => false.into(),
            Abe::Recommended => true.into(),
            Abe::Keeps(share) => SHARE.write(share),
        }
    }

    fn accepts(&self) -> String {
        format!("{}, or {}", Flag.accepts(), SHARE.accepts())
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"anyOf": [Flag.schema(names), SHARE.schema(names)]})
    }
}

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
    let abe = section.given("abe").filter(|_| tcp.abe != Abe::Off);
    if let (false, Some(abe)) = (tcp.ecn, &abe) {
        let got = AbeForm.write(&tcp.abe);
        return Err(abe.error(format!(
            "got {got}; needs ecn = true, since it responds to marks"
        )));
    }
    if !LOSS_BASED.contains(&tcp.congestion_control.as_str())
        && let Some(given) = abe.or_else(|| section.given("beta"))
    {
        let known = LOSS_BASED.join(", ");
        return Err(given.error(format!(
            "needs a tcp that keeps a fixed share of its window: {known}; it is {}",
            tcp.congestion_control
        )));
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
