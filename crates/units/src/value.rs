//! A quantity as written in an experiment file, and the kind of quantity that a key accepts.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::{Duration, Rate};

/// The kind of value that a key accepts. The first word of each doc line is its name in error messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A span: `"5 ms"`, `"1.5 s"`, `"250 us"`.
    Duration,
    /// A rate above zero: `"10 Mbit/s"`, `"1 Gbit/s"`, also tc's `"10mbit"`.
    Rate,
    /// An amount of data: `"150 kB"`, `"1514 B"` (k = 1000).
    Bytes,
    /// An amount of data or a number of packets: `"83 packets"`, `"150 kB"`.
    Size,
    /// A number of packets: `"83 packets"`, or a bare whole number.
    Packets,
    /// A probability from 0 to 1, a bare number.
    Probability,
    /// Any finite bare number.
    Number,
    /// A whole bare number from 0.
    Count,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The path of a file, whose text is read with the experiment.
    File,
}

/// A parsed quantity.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A span.
    Duration(Duration),
    /// A rate.
    Rate(Rate),
    /// An amount of data in bytes.
    Bytes(u64),
    /// A number of packets.
    Packets(u64),
    /// A probability or another number.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// A yes or no.
    Flag(bool),
    /// One word of a choice.
    Word(String),
    /// A file.
    File(TextFile),
}

/// A file with its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextFile {
    /// Its name as given in the experiment.
    pub name: String,
    /// Its text.
    pub text: Arc<str>,
}

/// Why a string is not the expected quantity; continues "got …; ".
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitError(String);

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for UnitError {}

impl Kind {
    /// The accepted values, for messages: `a time like "5 ms"`.
    pub fn accepts(self) -> String {
        match self {
            Self::Duration => "a time like \"5 ms\" (ns, us, ms, s, min)".into(),
            Self::Rate => {
                "a rate above zero like \"10 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s)".into()
            }
            Self::Bytes => "an amount of data like \"1514 B\" (B, kB, MB, GB)".into(),
            Self::Size => "\"83 packets\" or an amount of data like \"150 kB\"".into(),
            Self::Packets => "a number of packets like \"83 packets\" or 83".into(),
            Self::Probability => "a number from 0 to 1".into(),
            Self::Number => "a number".into(),
            Self::Count => "a whole number from 0".into(),
            Self::Flag => "true or false".into(),
            Self::Choice(words) => {
                let quoted: Vec<String> = words.iter().map(|w| format!("\"{w}\"")).collect();
                format!("one of {}", quoted.join(", "))
            }
            Self::File => "the path of a file, given in the experiment".into(),
        }
    }

    /// Parses a string as this kind. Numbers, counts and flags are parsed as well, so that an override on a command
    /// line needs no quotes. A file is not read here: its text comes with the experiment.
    ///
    /// # Errors
    /// The string is not such a quantity, or out of the kind's range; the message says what is accepted.
    pub fn parse(self, text: &str) -> Result<Value, UnitError> {
        let text = text.trim();
        let value = match self {
            Self::Duration => parse_duration(text).map(Value::Duration),
            Self::Rate => parse_rate(text).map(Value::Rate),
            Self::Bytes => parse_bytes(text).map(Value::Bytes),
            Self::Size => parse_packets(text)
                .map(Value::Packets)
                .or_else(|| parse_bytes(text).map(Value::Bytes)),
            Self::Packets => parse_packets(text)
                .or_else(|| text.parse().ok())
                .map(Value::Packets),
            Self::Probability | Self::Number => text.parse().ok().map(Value::Number),
            Self::Count => text.parse().ok().map(Value::Count),
            Self::Flag => text.parse().ok().map(Value::Flag),
            Self::Choice(_) => Some(Value::Word(text.to_string())),
            Self::File => None,
        };
        value
            .filter(|v| self.admits(v))
            .ok_or_else(|| UnitError(format!("must be {}", self.accepts())))
    }

    /// Interprets a bare number as this kind.
    ///
    /// # Errors
    /// This kind needs a unit, a flag or a word that is not a number, or the number is out of range.
    pub fn from_number(self, number: f64) -> Result<Value, UnitError> {
        let value = match self {
            Self::Probability | Self::Number => Some(Value::Number(number)),
            Self::Count => whole(number).map(Value::Count),
            Self::Packets => whole(number).map(Value::Packets),
            Self::Choice(_) => Some(Value::Word(number.to_string())),
            _ => None,
        };
        value
            .filter(|v| self.admits(v))
            .ok_or_else(|| UnitError(format!("must be {}", self.accepts())))
    }

    /// True if the value is of this kind and within its range.
    pub fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Duration, Value::Duration(_))
            | (Self::Rate, Value::Rate(_))
            | (Self::Bytes | Self::Size, Value::Bytes(_))
            | (Self::Size | Self::Packets, Value::Packets(_))
            | (Self::Count, Value::Count(_))
            | (Self::Flag, Value::Flag(_))
            | (Self::File, Value::File(_)) => true,
            (Self::Probability, Value::Number(p)) => (0.0..=1.0).contains(p),
            (Self::Number, Value::Number(x)) => x.is_finite(),
            (Self::Choice(words), Value::Word(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }
}

/// A text as a number with the unit in which columns have it: a time in `ms`, a rate in `bps`, an amount of data in
/// `bytes`, `packets`, `bdp`, `percent`, or no unit. `None` if it is none of these, such as a name.
///
/// ```
/// use sojourn_units::quantity;
///
/// assert_eq!(quantity("1.5 s"), Some((1500.0, "ms")));
/// assert_eq!(quantity("10mbit"), Some((1e7, "bps")));
/// assert_eq!(quantity("150 KiB"), Some((153_600.0, "bytes")));
/// assert_eq!(quantity("codel"), None);
/// ```
pub fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let text = text.trim();
    let suffixed = |suffix| {
        text.strip_suffix(suffix)
            .and_then(|n| n.trim().parse().ok())
    };
    parse_duration(text)
        .map(|time| (time.as_nanos() as f64 / 1e6, "ms"))
        .or_else(|| parse_rate(text).map(|rate| (rate.as_bps() as f64, "bps")))
        .or_else(|| parse_bytes(text).map(|bytes| (bytes as f64, "bytes")))
        .or_else(|| parse_packets(text).map(|packets| (packets as f64, "packets")))
        .or_else(|| suffixed("bdp").map(|multiple| (multiple, "bdp")))
        .or_else(|| suffixed("%").map(|share| (share, "percent")))
        .or_else(|| text.parse().ok().map(|number: f64| (number, "")))
        .filter(|(number, _)| number.is_finite())
}

/// A whole number that is not negative.
fn whole(number: f64) -> Option<u64> {
    let is_whole = number >= 0.0 && number <= u64::MAX as f64 && number as u64 as f64 == number;
    is_whole.then_some(number as u64)
}

/// Splits `"10 Mbit/s"` into its number and unit. Returns `None` for a sign, an exponent or anything else that is not
/// a plain decimal number.
fn split(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

/// `number` × `size` as a whole number, if it is whole within rounding and does not overflow.
fn scale(number: f64, size: u64) -> Option<u64> {
    let scaled = number * size as f64;
    (scaled.is_finite() && scaled < 9.2e18).then_some((scaled + 0.5) as u64)
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let nanos = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        _ => return None,
    };
    scale(number, nanos).map(Duration::from_nanos)
}

fn parse_rate(text: &str) -> Option<Rate> {
    let (number, unit) = split(text)?;
    let bps = match unit {
        "bit/s" | "bps" | "bit" => 1,
        "kbit/s" | "kbps" | "kbit" => 1_000,
        "Mbit/s" | "Mbps" | "Mbit" | "mbit" => 1_000_000,
        "Gbit/s" | "Gbps" | "Gbit" | "gbit" => 1_000_000_000,
        _ => return None,
    };
    scale(number, bps).and_then(Rate::from_bps)
}

fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let size = match unit {
        "B" | "byte" | "bytes" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    scale(number, size)
}

fn parse_packets(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    (matches!(unit, "packets" | "packet" | "p") && number as u64 as f64 == number)
        .then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_with_units_are_read() {
        assert_eq!(
            Kind::Duration.parse("1.5 ms"),
            Ok(Value::Duration(Duration::from_micros(1500)))
        );
        assert_eq!(
            Kind::Rate.parse("10mbit"),
            Ok(Value::Rate(Rate::from_mbps(10)))
        );
        assert_eq!(Kind::Size.parse("150 kB"), Ok(Value::Bytes(150_000)));
        assert_eq!(Kind::Size.parse("83 packets"), Ok(Value::Packets(83)));
        assert_eq!(Kind::Count.parse("21"), Ok(Value::Count(21)));
        for packets in [
            Kind::Packets.parse("21 packets"),
            Kind::Packets.parse("21"),
            Kind::Packets.from_number(21.0),
        ] {
            assert_eq!(packets, Ok(Value::Packets(21)));
        }
        assert_eq!(Kind::Flag.parse("true"), Ok(Value::Flag(true)));
    }

    /// A variant may be named by its year, which needs no quotes.
    #[test]
    fn a_number_can_be_a_word_of_a_choice() {
        let variant = Kind::Choice(&["linux", "2012", "6.1"]);
        assert_eq!(variant.from_number(2012.0), Ok(Value::Word("2012".into())));
        assert_eq!(variant.from_number(6.1), Ok(Value::Word("6.1".into())));
        assert!(variant.from_number(2013.0).is_err());
    }

    #[test]
    fn what_is_no_such_quantity_is_refused() {
        for (kind, text) in [
            (Kind::Rate, "0 Mbit/s"),
            (Kind::Rate, "-1 Mbit/s"),
            (Kind::Rate, "10 ms"),
            (Kind::Duration, "5"),
            (Kind::Duration, "1e400 s"),
            (Kind::Duration, "99999999999999999999 s"),
            (Kind::Duration, ""),
            (Kind::Probability, "1.5"),
            (Kind::Number, "inf"),
            (Kind::Size, "1.5 packets"),
            (Kind::Choice(&["linux", "rfc8289"]), "bsd"),
        ] {
            assert!(kind.parse(text).is_err(), "{kind:?} {text:?}");
        }
    }

    /// What a file accepts in any place is a number, in the unit of its column.
    #[test]
    fn every_notation_is_a_quantity() {
        for (text, expected) in [
            ("250 us", (0.25, "ms")),
            ("2 min", (120_000.0, "ms")),
            ("1 Gbps", (1e9, "bps")),
            ("1514 B", (1514.0, "bytes")),
            ("21 packets", (21.0, "packets")),
            ("0.5 bdp", (0.5, "bdp")),
            ("1 %", (1.0, "percent")),
            ("-2.5e-3", (-0.0025, "")),
        ] {
            assert_eq!(quantity(text), Some(expected), "{text}");
        }
        for text in ["", "codel", "0 bit/s", "inf", "nan", "bdp", "5 apples"] {
            assert_eq!(quantity(text), None, "{text}");
        }
    }

    #[test]
    fn a_message_says_what_is_accepted() {
        let error = Kind::Duration.parse("5").unwrap_err();
        assert_eq!(
            error.to_string(),
            "must be a time like \"5 ms\" (ns, us, ms, s, min)"
        );
    }
}
