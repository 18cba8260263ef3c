//! Formats quantities as in an experiment file.

use serde_json::Value as Json;
use sojourn_units::Value;

use crate::model::Buffer;

/// A quantity as in a file, without quotes.
pub(crate) fn value(quantity: &Value) -> String {
    match value_json(quantity) {
        Json::String(text) => text,
        bare => bare.to_string(),
    }
}

/// An amount of data as in a file, in the largest unit without a fraction.
pub(crate) fn bytes(size: impl Into<u64>) -> String {
    let size = size.into();
    for (unit, bytes) in [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)] {
        if size > 0 && size % bytes == 0 {
            return format!("{} {unit}", size / bytes);
        }
    }
    format!("{size} B")
}

/// A queue's capacity as in a file.
pub(crate) fn buffer(buffer: Buffer) -> String {
    match buffer {
        Buffer::Packets(1) => "1 packet".into(),
        Buffer::Packets(packets) => format!("{packets} packets"),
        Buffer::Bytes(size) => bytes(size),
        Buffer::Bdp(multiple) => format!("{multiple} bdp"),
        Buffer::Time(time) => time.to_string(),
    }
}

/// A quantity as in a file: text with a unit, or a bare number, flag or word.
pub(crate) fn value_json(value: &Value) -> Json {
    match value {
        Value::Duration(span) => span.to_string().into(),
        Value::Rate(rate) => rate.to_string().into(),
        Value::Bytes(size) => bytes(*size).into(),
        Value::Packets(packets) => buffer(Buffer::Packets(*packets)).into(),
        Value::Number(number) => (*number).into(),
        Value::Count(count) => (*count).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::Word(word) => word.as_str().into(),
        Value::File(file) => file.name.as_str().into(),
    }
}
