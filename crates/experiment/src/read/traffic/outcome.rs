//! The keys for Quality of Outcome (draft-ietf-ippm-qoo): what an application needs of the network.

use serde_json::{Value as Json, json};
use sojourn_units::{Duration, Kind as Unit, Value};

use super::forms::Starts;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::forms::{Maybe, Speed};
use crate::keys::keys;
use crate::model::Outcome;
use crate::names::Names;

keys! {
    Outcome {
        /// For Quality of Outcome: the 99th percentile of the latency up to which the application works at its best, and
        /// from which it does not work.
        qoo_p99 = Maybe(Latencies), Words("100..200 ms");
        /// The same for the 99.9th percentile.
        qoo_p99_9 = Maybe(Latencies), Words("200..300 ms");
        /// The same for the share of packets lost: 0 to 100 %.
        qoo_loss = Maybe(Losses), Words("0.1..2 %");
        /// The goodput of a flow without which it does not work.
        qoo_rate = Maybe(Speed), Words("none");
    }
}

/// Two latencies, the first below the second.
struct Latencies;

impl Form for Latencies {
    type Out = (Duration, Duration);

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        match Starts.read(entry) {
            Ok((best, worst)) if best < worst => Ok((best, worst)),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, bounds: &Self::Out) -> Json {
        Starts.write(bounds)
    }

    fn accepts(&self) -> String {
        "a range like \"100..200 ms\" that ends above its beginning".into()
    }

    fn schema(&self, names: &Names) -> Json {
        Starts.schema(names)["anyOf"][1].clone()
    }
}

/// Two shares of packets, the first below the second.
struct Losses;

impl Form for Losses {
    type Out = (f64, f64);

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        let text = entry.text().and_then(|text| text.trim().strip_suffix('%'));
        let share = |text: &str| match Unit::Number.parse(text.trim()) {
            Ok(Value::Number(percent)) if (0.0..=100.0).contains(&percent) => Some(percent / 100.0),
            _ => None,
        };
        text.and_then(|text| text.split_once(".."))
            .and_then(|(best, worst)| share(best).zip(share(worst)))
            .filter(|(best, worst)| best < worst)
            .ok_or_else(|| entry.refuse(self.accepts()))
    }

    fn write(&self, (best, worst): &Self::Out) -> Json {
        // Percent as they were read: 0.1 and not 0.10000000000000001.
        let percent = |share: &f64| (share * 100.0 * 1e9).round() / 1e9;
        format!("{}..{} %", percent(best), percent(worst)).into()
    }

    fn accepts(&self) -> String {
        "two shares from 0 to 100 %, the second above the first, like \"0.1..2 %\"".into()
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "string", "pattern": r"^(\d+\.?\d*|\.\d+) *\.\. *(\d+\.?\d*|\.\d+) *%$"})
    }
}
