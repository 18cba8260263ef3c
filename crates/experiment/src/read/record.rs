//! `[record]`: what to record beyond the summary.

use serde_json::Value as Json;

use crate::error::ReadError;
use crate::form::{AnyKey, Default, Form, Key, table_schema};
use crate::forms::{Flag, Span};
use crate::model::Record;
use crate::names::Names;
use crate::section::{Entry, Section, names_of};

static PACKETS: Key<Flag> = Key {
    name: "packets",
    form: Flag,
    default: Default::Is("false"),
    doc: "A row per packet that met the queue; large for long runs.",
};
static PCAP: Key<Flag> = Key {
    name: "pcap",
    form: Flag,
    default: Default::Is("false"),
    doc: "The headers of the packets that pass the bottleneck, as a pcapng file; large for long runs.",
};
static RTT: Key<Flag> = Key {
    name: "rtt",
    form: Flag,
    default: Default::Is("false"),
    doc: "A row per round-trip time that a flow measured.",
};
static SERIES: Key<Span> = Key {
    name: "series",
    form: Span::AboveZero,
    default: Default::Words("no time series"),
    doc: "Width of the bins of the time series.",
};
static KEYS: &[&dyn AnyKey] = &[&PACKETS, &PCAP, &RTT, &SERIES];

/// The section.
pub(crate) struct RecordForm;

impl Form for RecordForm {
    type Out = Record;

    fn read(&self, entry: &Entry<'_>) -> Result<Record, ReadError> {
        let section = Section::open(entry, self)?.only("[record]", names_of(KEYS))?;
        Ok(Record {
            packets: section.get(&PACKETS)?,
            pcap: section.get(&PCAP)?,
            rtt: section.get(&RTT)?,
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
