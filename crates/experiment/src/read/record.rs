//! `[record]`: what to record beyond the summary.

use serde_json::{Value as Json, json};

use crate::document::Item;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::forms::{Flag, Maybe, Span, Word};
use crate::keys::{TableOf, keys};
use crate::model::{CapturePoint, Record, RttOf};
use crate::names::Names;
use crate::section::Section;

keys! {
    Record {
        /// A row per packet that arrived at a queue; large for long runs.
        packets = Flag, Is("false");
        /// A row per transmission in a Wi-Fi cell: its sender, when it began to wait, and its outcome.
        medium = Flag, Is("false");
        /// Capture packet headers in a pcapng file, as tcpdump does: at the router behind its queue (true or "router"),
        /// or at the hosts that send or receive each flow's data; large for long runs.
        pcap = PcapForm, Is("false");
        /// A file per TCP flow with what its sender does, in qlog: packets sent, received and judged lost, cwnd, RTT, pacing
        /// and the congestion control's state; large for long runs.
        qlog = Flag, Is("false");
        /// A row per round-trip time that a flow measured.
        rtt = Flag, Is("false");
        /// What counts as an RTT of TCP: its own samples, or the time from each segment's first transmission to its
        /// acknowledgement, losses included, as tcptrace and Wireshark draw it.
        rtt_of = RTT_OF, Is("samples");
        /// Report one-way delay, jitter and delay variation, from the bottleneck on, for the data of TCP flows too.
        one_way = Flag, Is("false");
        /// Score every group by Quality of Outcome (draft-ietf-ippm-qoo). A group with a key of its own for it has a score
        /// in any case.
        qoo = Flag, Is("false");
        /// Width of the bins of the time series.
        series = Maybe(Span::AboveZero), Words("no time series");
    }
    ; check check
}

/// The section.
pub(crate) const RECORD: TableOf<Record> = TableOf::new("[record]", "a table [record]");

const RTT_OF: Word<RttOf> = Word(&[("samples", RttOf::Samples), ("segments", RttOf::Segments)]);

fn check(record: &Record, section: &Section<'_>) -> Result<(), ReadError> {
    match (record.rtt, record.rtt_of, section.given("rtt_of")) {
        (false, RttOf::Segments, Some(given)) => Err(given.refuse("left out: needs rtt = true")),
        _ => Ok(()),
    }
}

/// Whether to capture packets, and where.
struct PcapForm;

const POINTS: Word<CapturePoint> = Word(&[
    ("sender", CapturePoint::Sender),
    ("router", CapturePoint::Router),
    ("receiver", CapturePoint::Receiver),
]);

impl Form for PcapForm {
    type Out = Option<CapturePoint>;

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        match &entry.node.item {
            Item::Flag(flag) => Ok(flag.then_some(CapturePoint::Router)),
            Item::Text(_) => POINTS.read(entry).map(Some),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, point: &Self::Out) -> Json {
        point.map_or(false.into(), |point| POINTS.write(&point))
    }

    fn accepts(&self) -> String {
        format!("{} or {}", Flag.accepts(), POINTS.accepts())
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"anyOf": [Flag.schema(names), POINTS.schema(names)]})
    }
}
