//! Forms of values that several keys share.

use serde_json::{Value as Json, json};
use sojourn_units::{Duration, Kind, Rate, Value};

use crate::document::is_unseen;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::form::Form;
use crate::model::Buffer;
use crate::names::Names;
use crate::written;

/// A decimal number without sign or exponent, as [`Kind::parse`] accepts it before a unit.
const DECIMAL: &str = r"(\d+\.?\d*|\.\d+)";

/// The JSON Schema of the values of `kind`.
pub(crate) fn kind_schema(kind: Kind) -> Json {
    let with_unit =
        |units: &str| json!({"type": "string", "pattern": format!("^{DECIMAL} *({units})$")});
    const DATA: &str = "B|bytes?|kB|MB|GB|KiB|MiB|GiB";
    match kind {
        Kind::Duration => with_unit("ns|us|µs|ms|s|min"),
        Kind::Rate => {
            with_unit("bit/s|bps|bit|kbit/s|kbps|kbit|Mbit/s|Mbps|Mbit|mbit|Gbit/s|Gbps|Gbit|gbit")
        }
        Kind::Bytes => with_unit(DATA),
        Kind::Size => with_unit(&format!("packets?|p|{DATA}")),
        Kind::Packets => {
            json!({"anyOf": [with_unit("packets?|p"), kind_schema(Kind::Count)]})
        }
        Kind::Probability => json!({"type": "number", "minimum": 0, "maximum": 1}),
        Kind::Number => json!({"type": "number"}),
        Kind::Count => json!({"type": "integer", "minimum": 0}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Choice(words) => json!({"type": "string", "enum": words}),
        Kind::File => json!({"type": "string", "minLength": 1}),
    }
}

/// Free text on one line.
pub(crate) struct Text;

impl Form for Text {
    type Out = String;

    fn read(&self, entry: &Entry<'_>) -> Result<String, ReadError> {
        let fits = |text: &&str| {
            let length = text.chars().count();
            (1..=200).contains(&length) && !text.chars().any(is_unseen)
        };
        let text = entry.text().filter(fits);
        text.map(str::to_string)
            .ok_or_else(|| entry.refuse(self.accepts()))
    }

    fn write(&self, value: &String) -> Json {
        value.as_str().into()
    }

    fn accepts(&self) -> String {
        "1 to 200 characters of text on one line, without control characters".into()
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "string", "minLength": 1, "maxLength": 200})
    }
}

/// True or false.
pub(crate) struct Flag;

impl Form for Flag {
    type Out = bool;

    fn read(&self, entry: &Entry<'_>) -> Result<bool, ReadError> {
        match entry.quantity(Kind::Flag)? {
            Value::Flag(flag) => Ok(flag),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, value: &bool) -> Json {
        (*value).into()
    }

    fn accepts(&self) -> String {
        Kind::Flag.accepts()
    }

    fn schema(&self, _: &Names) -> Json {
        kind_schema(Kind::Flag)
    }
}

/// An integer in a range, both ends included.
pub(crate) struct Whole<T> {
    pub from: T,
    pub to: T,
}

/// An unsigned integer type of a key.
pub(crate) trait Unsigned: Copy + PartialOrd + TryFrom<u64> + Into<u64> {}

impl Unsigned for u32 {}
impl Unsigned for u64 {}

impl<T: Unsigned> Form for Whole<T> {
    type Out = T;

    fn read(&self, entry: &Entry<'_>) -> Result<T, ReadError> {
        let count = match entry.quantity(Kind::Count) {
            Ok(Value::Count(count)) => T::try_from(count).ok(),
            _ => None,
        };
        count
            .filter(|count| (self.from..=self.to).contains(count))
            .ok_or_else(|| entry.refuse(self.accepts()))
    }

    fn write(&self, value: &T) -> Json {
        Into::<u64>::into(*value).into()
    }

    fn accepts(&self) -> String {
        let (from, to): (u64, u64) = (self.from.into(), self.to.into());
        format!("a whole number from {from} to {to}")
    }

    fn schema(&self, _: &Names) -> Json {
        let (from, to): (u64, u64) = (self.from.into(), self.to.into());
        json!({"type": "integer", "minimum": from, "maximum": to})
    }
}

/// A number in a range that excludes its lower end.
pub(crate) struct Decimal {
    pub above: f64,
    pub to: f64,
}

impl Form for Decimal {
    type Out = f64;

    fn read(&self, entry: &Entry<'_>) -> Result<f64, ReadError> {
        match entry.quantity(Kind::Number) {
            Ok(Value::Number(number)) if number > self.above && number <= self.to => Ok(number),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, value: &f64) -> Json {
        (*value).into()
    }

    fn accepts(&self) -> String {
        format!("a number above {} and at most {}", self.above, self.to)
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "number", "exclusiveMinimum": self.above, "maximum": self.to})
    }
}

/// A duration.
pub(crate) enum Span {
    /// Zero is accepted.
    Any,
    /// Zero is refused.
    AboveZero,
}

impl Form for Span {
    type Out = Duration;

    fn read(&self, entry: &Entry<'_>) -> Result<Duration, ReadError> {
        if entry
            .text()
            .is_some_and(|text| text.trim().starts_with('-'))
        {
            return Err(match self {
                Self::Any => entry.refuse(format!("{}, not negative", self.accepts())),
                Self::AboveZero => entry.refuse(self.accepts()),
            });
        }
        match (entry.quantity(Kind::Duration)?, self) {
            (Value::Duration(span), Self::Any) => Ok(span),
            (Value::Duration(span), Self::AboveZero) if !span.is_zero() => Ok(span),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, value: &Duration) -> Json {
        value.to_string().into()
    }

    fn accepts(&self) -> String {
        match self {
            Self::Any => Kind::Duration.accepts(),
            Self::AboveZero => Kind::Duration
                .accepts()
                .replacen("time", "time above zero", 1),
        }
    }

    fn schema(&self, _: &Names) -> Json {
        kind_schema(Kind::Duration)
    }
}

/// A data rate.
pub(crate) struct Speed;

impl Form for Speed {
    type Out = Rate;

    fn read(&self, entry: &Entry<'_>) -> Result<Rate, ReadError> {
        match entry.quantity(Kind::Rate)? {
            Value::Rate(rate) => Ok(rate),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, value: &Rate) -> Json {
        value.to_string().into()
    }

    fn accepts(&self) -> String {
        Kind::Rate.accepts()
    }

    fn schema(&self, _: &Names) -> Json {
        kind_schema(Kind::Rate)
    }
}

/// An amount of data in bytes, within a range that includes both ends.
pub(crate) struct Bytes<T> {
    pub from: T,
    pub to: T,
}

impl<T: Unsigned> Form for Bytes<T> {
    type Out = T;

    fn read(&self, entry: &Entry<'_>) -> Result<T, ReadError> {
        let bytes = match entry.quantity(Kind::Bytes) {
            Ok(Value::Bytes(bytes)) => T::try_from(bytes).ok(),
            _ => None,
        };
        bytes
            .filter(|bytes| (self.from..=self.to).contains(bytes))
            .ok_or_else(|| entry.refuse(self.accepts()))
    }

    fn write(&self, value: &T) -> Json {
        written::bytes(*value).into()
    }

    fn accepts(&self) -> String {
        let (from, to) = (written::bytes(self.from), written::bytes(self.to));
        format!("from \"{from}\" to \"{to}\" (B, kB, MB, GB)")
    }

    fn schema(&self, _: &Names) -> Json {
        kind_schema(Kind::Bytes)
    }
}

/// A number of packets, possibly zero.
pub(crate) struct Packets;

impl Form for Packets {
    type Out = u64;

    fn read(&self, entry: &Entry<'_>) -> Result<u64, ReadError> {
        match entry.quantity(Kind::Size) {
            Ok(Value::Packets(packets)) => Ok(packets),
            _ => Err(entry.refuse(self.accepts())),
        }
    }

    fn write(&self, value: &u64) -> Json {
        format!("{value} packets").into()
    }

    fn accepts(&self) -> String {
        "a number of packets like \"256 packets\"".into()
    }

    fn schema(&self, _: &Names) -> Json {
        json!({"type": "string", "pattern": r"^\d+ *(packets?|p)$"})
    }
}

/// The longest buffer that is given as a time.
const LONGEST_BUFFER: Duration = Duration::from_secs(1000);

/// The capacity of a queue.
pub(crate) struct BufferForm;

impl Form for BufferForm {
    type Out = Buffer;

    fn read(&self, entry: &Entry<'_>) -> Result<Buffer, ReadError> {
        let multiple = entry
            .text()
            .and_then(|text| text.trim().strip_suffix("bdp"));
        if let Some(number) = multiple {
            let number = number.trim_end();
            let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
            return match number.parse::<f64>() {
                Ok(bdp) if plain && bdp > 0.0 && bdp <= 10_000.0 => Ok(Buffer::Bdp(bdp)),
                _ => Err(entry.refuse("above 0 and at most \"10000 bdp\"")),
            };
        }
        if let Some(Ok(Value::Duration(time))) = entry.text().map(|text| Kind::Duration.parse(text))
        {
            return match time {
                Duration::ZERO => Err(entry.refuse("above \"0 s\"")),
                _ if time > LONGEST_BUFFER => {
                    Err(entry.refuse(format!("at most \"{LONGEST_BUFFER}\"")))
                }
                _ => Ok(Buffer::Time(time)),
            };
        }
        let size = entry.text().map(|text| Kind::Size.parse(text));
        if !matches!(size, Some(Ok(_))) {
            return Err(entry.refuse(self.accepts()));
        }
        match entry.quantity(Kind::Size)? {
            Value::Packets(packets) if packets > 0 => Ok(Buffer::Packets(packets)),
            Value::Bytes(bytes) if bytes > 0 => Ok(Buffer::Bytes(bytes)),
            _ => Err(entry.refuse("at least \"1 packet\"")),
        }
    }

    fn write(&self, value: &Buffer) -> Json {
        written::buffer(*value).into()
    }

    fn accepts(&self) -> String {
        "a size like \"1000 packets\", \"150 kB\", \"250 ms\" or \"1 bdp\"".into()
    }

    fn schema(&self, _: &Names) -> Json {
        let bdp = json!({"type": "string", "pattern": format!("^{DECIMAL} *bdp$")});
        json!({"anyOf": [kind_schema(Kind::Size), kind_schema(Kind::Duration), bdp]})
    }
}

/// One of the words of the file format, each with its meaning.
pub(crate) struct Word<T: 'static>(pub &'static [(&'static str, T)]);

impl<T: PartialEq> Word<T> {
    /// The word for something.
    pub fn word(&self, meaning: &T) -> &'static str {
        let word = self.0.iter().find(|(_, known)| known == meaning);
        word.map_or("", |(word, _)| *word)
    }
}

impl<T: Copy + PartialEq> Form for Word<T> {
    type Out = T;

    fn read(&self, entry: &Entry<'_>) -> Result<T, ReadError> {
        let words = || self.0.iter().map(|(word, _)| *word);
        let text = entry.word().ok_or_else(|| entry.refuse(self.accepts()))?;
        let found = self.0.iter().find(|(word, _)| *word == text);
        found
            .map(|(_, meaning)| *meaning)
            .ok_or_else(|| match entry.text() {
                Some(_) => entry.unknown(words()),
                None => entry.refuse(self.accepts()),
            })
    }

    fn write(&self, value: &T) -> Json {
        self.word(value).into()
    }

    fn accepts(&self) -> String {
        let quoted: Vec<String> = self
            .0
            .iter()
            .map(|(word, _)| format!("\"{word}\""))
            .collect();
        format!("one of {}", quoted.join(", "))
    }

    fn schema(&self, _: &Names) -> Json {
        let words: Vec<&str> = self.0.iter().map(|(word, _)| *word).collect();
        json!({"type": "string", "enum": words})
    }
}

/// One of the names that the caller provides.
pub(crate) struct Named {
    /// What the name denotes, such as `congestion control`.
    pub what: &'static str,
    pub known: fn(&Names) -> Vec<&str>,
}

impl Form for Named {
    type Out = String;

    fn read(&self, entry: &Entry<'_>) -> Result<String, ReadError> {
        let text = entry.text().ok_or_else(|| entry.refuse(self.accepts()))?;
        let known = (self.known)(entry.context.names);
        if known.contains(&text) {
            Ok(text.into())
        } else {
            Err(entry.unknown(known))
        }
    }

    fn write(&self, value: &String) -> Json {
        value.as_str().into()
    }

    fn accepts(&self) -> String {
        format!("the name of a {}", self.what)
    }

    fn schema(&self, names: &Names) -> Json {
        json!({"type": "string", "enum": (self.known)(names)})
    }
}

/// An optional value.
pub(crate) struct Maybe<F>(pub F);

impl<F: Form> Form for Maybe<F> {
    type Out = Option<F::Out>;

    fn read(&self, entry: &Entry<'_>) -> Result<Self::Out, ReadError> {
        self.0.read(entry).map(Some)
    }

    fn absent(&self) -> Option<Self::Out> {
        Some(None)
    }

    fn write(&self, value: &Self::Out) -> Json {
        value
            .as_ref()
            .map_or(Json::Null, |value| self.0.write(value))
    }

    fn accepts(&self) -> String {
        self.0.accepts()
    }

    fn schema(&self, names: &Names) -> Json {
        self.0.schema(names)
    }
}
