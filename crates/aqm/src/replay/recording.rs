//! The text of a recording: one row per event, `E id t_us [bytes [flow [ecn]]]` or `D id t_us [ce]`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sojourn_units::{Duration, Time};

use super::Event;
use crate::packet::Ecn;

/// Bytes of a packet whose row gives no size: a full Ethernet frame.
const FRAME: u32 = 1514;
/// The largest packet: larger than any offload builds.
const MOST_BYTES: u32 = 1_000_000;
/// The longest recording: a timer with a period of a few milliseconds runs for all of it.
const LONGEST_DAYS: u64 = 30;
/// The latest time, 292 years: a clock that began in 1970 is below it.
const LATEST_NS: u64 = u64::MAX / 2;

/// An error in a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordingError {
    /// The line, from 1; `None` if it concerns the whole file.
    pub line: Option<usize>,
    /// The field, what was given and what is accepted.
    pub message: String,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl core::error::Error for RecordingError {}

/// The forms of the rows.
const FORMS: &str = "\"E id t_us [bytes [flow [ecn]]]\" or \"D id t_us [ce]\"";

/// Reads a recording. Skips empty lines and lines that start with `#`.
///
/// # Errors
/// A row has another form; a time decreases, or is more than 30 days after the first; the ids of arrivals do not
/// increase; a packet leaves that is not in the queue; there is no row at all.
pub fn read(text: &str) -> Result<Vec<Event>, RecordingError> {
    let mut events = Vec::new();
    let mut books = Books::default();
    for (line, row) in (1..).zip(text.lines()) {
        let row = row.trim();
        if row.is_empty() || row.starts_with('#') {
            continue;
        }
        let event = event(row).and_then(|event| books.enter(event).map(|()| event));
        events.push(event.map_err(|message| RecordingError {
            line: Some(line),
            message,
        })?);
    }
    if events.is_empty() {
        return Err(RecordingError {
            line: None,
            message: format!("no events; a recording has rows {FORMS}"),
        });
    }
    // Where marks are recorded, a departure without one left unmarked.
    let tells = |event: &Event| matches!(event, Event::Dequeue { ce: Some(_), .. });
    if events.iter().any(tells) {
        for event in &mut events {
            if let Event::Dequeue { ce, .. } = event {
                *ce = Some(ce.unwrap_or(false));
            }
        }
    }
    Ok(events)
}

fn event(row: &str) -> Result<Event, String> {
    let mut fields = row.split_ascii_whitespace();
    let mut next = || fields.next();
    let fields = [(); 7].map(|()| next());
    let event = match fields {
        [Some("E"), Some(id), Some(t_us), bytes, flow, ecn, None] => Event::Enqueue {
            id: number("id", id)?,
            at: microseconds(t_us)?,
            bytes: bytes.map_or(Ok(FRAME), size)?,
            flow: flow.map(flow_number).transpose()?,
            ecn: ecn.map_or(Ok(Ecn::NotEct), ecn_field)?,
        },
        [Some("D"), Some(id), Some(t_us), ce, None, ..] => Event::Dequeue {
            id: number("id", id)?,
            at: microseconds(t_us)?,
            ce: ce.map(mark).transpose()?,
        },
        _ => {
            let given: String = row.chars().take(40).collect();
            return Err(format!("got \"{given}\"; a row is {FORMS}"));
        }
    };
    Ok(event)
}

/// A time in microseconds with at most three decimals.
fn microseconds(given: &str) -> Result<Time, String> {
    let (whole, part) = given.split_once('.').unwrap_or((given, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    let nanos = (digits(whole) && digits(part) && part.len() <= 3)
        .then(|| format!("{whole}{part:0<3}"))
        .and_then(|text| text.parse().ok())
        .filter(|nanos| *nanos <= LATEST_NS);
    nanos.map(Time::from_nanos).ok_or_else(|| {
        format!(
            "t_us: got \"{given}\"; must be a number from 0 to {} with at most three decimals",
            LATEST_NS / 1_000
        )
    })
}

fn number(field: &str, given: &str) -> Result<u64, String> {
    let number = given.parse().ok();
    number.ok_or_else(|| format!("{field}: got \"{given}\"; must be a whole number from 0"))
}

fn size(given: &str) -> Result<u32, String> {
    let bytes = given.parse().ok();
    bytes
        .filter(|bytes| (1..=MOST_BYTES).contains(bytes))
        .ok_or_else(|| {
            format!("bytes: got \"{given}\"; must be a whole number from 1 to {MOST_BYTES}")
        })
}

fn flow_number(given: &str) -> Result<u32, String> {
    let number = given.parse().ok();
    number.ok_or_else(|| {
        format!(
            "flow: got \"{given}\"; must be a whole number from 0 to {}",
            u32::MAX
        )
    })
}

/// The two bits of the IP header.
fn ecn_field(given: &str) -> Result<Ecn, String> {
    match given {
        "0" => Ok(Ecn::NotEct),
        "1" => Ok(Ecn::Ect1),
        "2" => Ok(Ecn::Ect0),
        "3" => Ok(Ecn::Ce),
        _ => Err(format!(
            "ecn: got \"{given}\"; must be the field: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE"
        )),
    }
}

fn mark(given: &str) -> Result<bool, String> {
    match given {
        "1" | "ce" => Ok(true),
        "0" => Ok(false),
        _ => Err(format!(
            "ce: got \"{given}\"; must be 1 or ce (it left with CE) or 0"
        )),
    }
}

/// As a recording writes it: decimals only if there are some.
fn as_us(at: Time) -> String {
    let (whole, part) = (at.as_nanos() / 1_000, at.as_nanos() % 1_000);
    if part == 0 {
        format!("{whole}")
    } else {
        format!("{whole}.{part:03}")
    }
}

/// The state after the rows so far, to check the next one.
#[derive(Default)]
struct Books {
    first: Option<Time>,
    latest: Time,
    /// The ids of arrivals in increasing order, and whether each packet has left.
    packets: Vec<(u64, bool)>,
}

impl Books {
    fn enter(&mut self, event: Event) -> Result<(), String> {
        let at = event.time();
        let first = *self.first.get_or_insert(at);
        if at < self.latest {
            return Err(format!(
                "t_us: got {}; time must not go back (the row before has {})",
                as_us(at),
                as_us(self.latest)
            ));
        }
        if at - first > Duration::from_secs(LONGEST_DAYS * 86_400) {
            return Err(format!(
                "t_us: got {}; must be within {LONGEST_DAYS} days of the first row ({})",
                as_us(at),
                as_us(first)
            ));
        }
        self.latest = at;
        match event {
            Event::Enqueue { id, .. } => self.arrive(id),
            Event::Dequeue { id, .. } => self.depart(id),
        }
    }

    fn arrive(&mut self, id: u64) -> Result<(), String> {
        match self.packets.last() {
            Some(&(before, _)) if id <= before => Err(format!(
                "id: got {id}; must be above that of the arrival before ({before})"
            )),
            _ => {
                self.packets.push((id, false));
                Ok(())
            }
        }
    }

    fn depart(&mut self, id: u64) -> Result<(), String> {
        let index = self.packets.binary_search_by_key(&id, |&(known, _)| known);
        let packet = index.ok().map(|index| &mut self.packets[index]);
        match packet {
            Some((_, departed @ false)) => {
                *departed = true;
                Ok(())
            }
            Some(_) => Err(format!("id: got {id}; this packet has left already")),
            None => Err(format!("id: got {id}; no such packet has entered")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_events_and_a_packet_without_a_size_is_a_full_frame() {
        let read = read("# a router\nE 3 10\n\nE 7 10 60\r\nD 7 25\n").unwrap();
        let enqueue = |id, bytes| Event::Enqueue {
            id,
            at: us(10),
            bytes,
            flow: None,
            ecn: Ecn::NotEct,
        };
        let expected = [
            enqueue(3, 1514),
            enqueue(7, 60),
            Event::Dequeue {
                id: 7,
                at: us(25),
                ce: None,
            },
        ];
        assert_eq!(read, expected);
    }

    const fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn times_may_have_decimals() {
        let times = |text: &str| -> Vec<u64> {
            let read = read(text).unwrap();
            read.iter().map(|event| event.time().as_nanos()).collect()
        };
        assert_eq!(times("E 1 5.125\nE 2 5.2\nD 1 7\n"), [5125, 5200, 7000]);
    }

    #[test]
    fn flows_ecn_fields_and_marks_are_further_columns() {
        let read = read("E 1 5 60 7 2\nE 2 5 60 8\nD 1 6 ce\nD 2 7\n").unwrap();
        let enqueue = |id, flow, ecn| Event::Enqueue {
            id,
            at: us(5),
            bytes: 60,
            flow: Some(flow),
            ecn,
        };
        let dequeue = |id, t_us, ce| Event::Dequeue {
            id,
            at: us(t_us),
            ce,
        };
        let expected = [
            enqueue(1, 7, Ecn::Ect0),
            enqueue(2, 8, Ecn::NotEct),
            dequeue(1, 6, Some(true)),
            dequeue(2, 7, Some(false)),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn an_error_names_its_line() {
        let month_us = 30 * 86_400_000_000_u64;
        let late = format!("E 1 1\nE 2 {}", month_us + 2);
        for (text, line, parts) in [
            ("E 1 5\nX 1 6", 2, ["\"X 1 6\"", "\"E id t_us [bytes"]),
            ("E 1", 1, ["\"E 1\"", "a row is"]),
            ("E 1 5 6 7 2 9", 1, ["\"E 1 5 6 7 2 9\"", "a row is"]),
            ("E 1 5 6 x", 1, ["flow: got \"x\"", "whole number"]),
            ("E 1 5 6 7 4", 1, ["ecn: got \"4\"", "3 CE"]),
            ("E 1 5\nD 1 6 100", 2, ["ce: got \"100\"", "CE"]),
            ("E 1 5\nD 1 6 1 1", 2, ["\"D 1 6 1 1\"", "a row is"]),
            ("E -1 5", 1, ["id: got \"-1\"", "whole number"]),
            ("E 1 5.1234", 1, ["t_us: got \"5.1234\"", "three decimals"]),
            ("E 1 .5", 1, ["t_us: got \".5\"", "three decimals"]),
            ("E 1 5.125\nE 2 5.06", 2, ["t_us: got 5.060", "has 5.125)"]),
            ("E 1 5 0", 1, ["bytes: got \"0\"", "from 1 to"]),
            ("# x\nE 1 5\nE 2 4", 3, ["t_us: got 4", "has 5)"]),
            (&late, 2, ["t_us: got 2592000000002", "30 days"]),
            ("E 2 5\nE 2 6", 2, ["id: got 2", "above"]),
            ("E 2 5\nE 1 6", 2, ["id: got 1", "(2)"]),
            ("E 1 5\nD 2 6", 2, ["id: got 2", "has entered"]),
            ("E 1 5\nD 1 6\nD 1 7", 3, ["id: got 1", "left already"]),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, Some(line), "{error}");
            assert!(
                parts.iter().all(|part| error.message.contains(part)),
                "{error}"
            );
        }
        assert_eq!(read("\n# nothing\n").unwrap_err().line, None);
    }
}
