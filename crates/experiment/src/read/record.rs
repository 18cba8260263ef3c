//! `[record]`: what to record beyond the summary.

use serde_json::{Value as Json, json};

use crate::document::Item;
use crate::error::ReadError;
use crate::form::{AnyKey, Default, Form, Key, table_schema};
use crate::forms::{Flag, Span, Word};
use crate::model::{CapturePoint, Record, RttOf};
use crate::names::Names;
use crate::section::{Entry, Section, names_of};

static PACKETS: Key<Flag> = Key {
    name: "packets",
    form: Flag,
    default: Default::Is("false"),
    doc: "A row per packet that met the queue; large for long runs.",
};
static PCAP: Key<PcapForm> = Key {
    name: "pcap",
    form: PcapForm,
    default: Default::Is("false"),
    doc: "The packets' headers as a pcapng file, as tcpdump takes them at the router (true: the same), behind its queue, or at the hosts that send or receive each flow's data; large for long runs.",
};
static RTT: Key<Flag> = Key {
    name: "rtt",
    form: Flag,
    default: Default::Is("false"),
    doc: "A row per round-trip time that a flow measured.",
};
static RTT_OF: Key<Word<RttOf>> = Key {
    name: "rtt_of",
    form: Word(&[("samples", RttOf::Samples), ("segments", RttOf::Segments)]),
    default: Default::Is("samples"),
    doc: "What rtt has of TCP: its own samples, or each segment's time from its first sending until it is acknowledged, losses included, as tcptrace and Wireshark draw it.",
};
static ONE_WAY: Key<Flag> = Key {
    name: "one_way",
    form: Flag,
    default: Default::Is("false"),
    doc: "One-way delays from the bottleneck on, their jitter and variation of TCP flows' data too, among the figures of the flows.",
};
static SERIES: Key<Span> = Key {
    name: "series",
    form: Span::AboveZero,
    default: Default::Words("no time series"),
    doc: "Width of the bins of the time series.",
};
static KEYS: &[&dyn AnyKey] = &[&PACKETS, &PCAP, &RTT, &RTT_OF, &ONE_WAY, &SERIES];

/// Whether there is a capture, and where.
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

    fn accepts(&self) -> String {
        format!("{} or {}", Flag.accepts(), POINTS.accepts())
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"anyOf": [Flag.schema(names), POINTS.schema(names)]})
    }
}

/// The section.
pub(crate) struct RecordForm;

impl Form for RecordForm {
    type Out = Record;

    fn read(&self, entry: &Entry<'_>) -> Result<Record, ReadError> {
        let section = Section::open(entry, self)?.only("[record]", names_of(KEYS))?;
        let rtt = section.get(&RTT)?;
        let rtt_of = section.get(&RTT_OF)?;
        if let (false, RttOf::Segments, Some(given)) = (rtt, rtt_of, section.given(RTT_OF.name)) {
            return Err(given.refuse("left out: needs rtt = true"));
        }
        Ok(Record {
            packets: section.get(&PACKETS)?,
            pcap: section.get(&PCAP)?,
            rtt,
            rtt_of,
            one_way: section.get(&ONE_WAY)?,
            series: section.find(&SERIES)?,
        })
    }

    fn accepts(&self) -> String {
        "a table [record]".into()
    }

    fn schema(&self, names: &Names) -> Json {
        table_schema(KEYS, names)
    }
}
