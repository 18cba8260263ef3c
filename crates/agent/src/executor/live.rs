//! Whoever watches a run on Sojourn's own path: gets a sample at a socket ten times a second, and changes keys by it.
//!
//! A sample, a request and its answer are a datagram each, a JSON object: `{"now_s": 1.5, "queues": [...], "flows": [...]}`,
//! `{"key": "link.rate", "value": "5 Mbit/s"}` and `{"set": "link.rate", "error": null}`.

use std::io::ErrorKind;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value as Json, json};
use sojourn_aqm::Catalogue;
use sojourn_datapath::Fate;
use sojourn_datapath::datapath::Ends;
use sojourn_datapath::flows::Flow;
use sojourn_datapath::network::states;
use sojourn_datapath::{Datapath, Packet};
use sojourn_experiment::RunSpec;
use sojourn_experiment::change::Changes;
use sojourn_units::{Duration, Time};

use super::foreign::catalogue;
use super::{Context, Failure};
use crate::decision::Foreign;

/// The time between two samples.
const EVERY: Duration = Duration::from_millis(100);
/// The longest request.
const LONGEST: usize = 4096;
/// A sample has the first so many flows: it is one datagram.
pub const MOST_FLOWS: usize = 256;

/// Ends of a path whose flows are measured from their packets.
pub trait Watched: Ends {
    /// All flows so far.
    fn flows(&self) -> &[Flow];

    /// The number of a flow in a sample; `None`: it is in none.
    fn number(&self, at: usize) -> Option<usize>;

    /// The flows in the order of their numbers, if the watcher does not know them.
    fn described(&self) -> Json {
        Json::Null
    }
}

/// A watcher.
pub struct Live {
    socket: UnixDatagram,
    spec: RunSpec,
    changes: Changes,
    catalogue: Catalogue<Packet>,
    next: Time,
    /// What the last sample had seen: rows, and by flow the bytes delivered and the round trips.
    rows: usize,
    flows: Vec<(u64, usize)>,
}

/// A key to be changed.
#[derive(Deserialize)]
struct Request {
    key: String,
    value: String,
}

impl Live {
    /// The watcher at a socket.
    ///
    /// # Errors
    /// There is none.
    pub fn at(socket: &Path, spec: &RunSpec, foreign: &[Foreign]) -> Result<Self, Failure> {
        let calling = || format!("{}: calling the watcher", socket.display());
        let own = UnixDatagram::bind(socket.with_extension("agent")).context(calling)?;
        own.connect(socket).context(calling)?;
        own.set_nonblocking(true).context(calling)?;
        Ok(Self {
            socket: own,
            spec: spec.clone(),
            changes: Changes::of(spec),
            catalogue: catalogue(foreign, None),
            next: Time::ZERO + EVERY,
            rows: 0,
            flows: Vec::new(),
        })
    }

    /// Takes requests, and sends what has happened since the last sample. Returns whether anyone watches.
    fn look<E: Watched>(&mut self, path: &mut Datapath<E>, now: Time) -> bool {
        self.next = now + EVERY;
        let mut buffer = [0; LONGEST];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let answer = self.answer(&buffer[..length], path, now);
            if !self.send(&answer) {
                return false;
            }
        }
        let sample = self.sample(path, now);
        self.send(&sample)
    }

    /// Sends a message; one for which there is no room is lost. Returns whether anyone listens.
    fn send(&self, message: &Json) -> bool {
        match self.socket.send(message.to_string().as_bytes()) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }

    fn answer<E: Watched>(&mut self, request: &[u8], path: &mut Datapath<E>, now: Time) -> Json {
        let Ok(Request { key, value }) = serde_json::from_slice(request) else {
            return json!({ "set": null, "error": "not a request" });
        };
        let given = (key.as_str(), value.as_str());
        let done = self
            .changes
            .set(&mut path.network, &self.spec, &self.catalogue, given, now);
        json!({ "set": key, "error": done.err().map(|error| error.to_string()) })
    }

    fn sample<E: Watched>(&mut self, path: &Datapath<E>, now: Time) -> Json {
        let rows = &path.network.observer.rows[self.rows..];
        self.rows += rows.len();
        let states = states(&path.network);
        let queue = |number: usize| {
            let left = rows.iter().filter(|row| {
                usize::from(row.queue) == number && !matches!(row.fate, Fate::Dropped(_))
            });
            let (mut n, mut bytes, mut sum, mut most) = (0_u64, 0_u64, 0.0, 0.0_f64);
            for row in left {
                let stayed = (row.settled - row.entered).as_millis_f64();
                n += 1;
                bytes += u64::from(row.bytes);
                sum += stayed;
                most = most.max(stayed);
            }
            let state = &states[number];
            json!({
                "packets": n,
                "bytes": bytes,
                "sojourn_mean_ms": (n > 0).then(|| sum / n as f64),
                "sojourn_max_ms": most,
                "backlog_packets": state.backlog_packets,
                "dropped": state.dropped.all,
                "marked": state.marked,
            })
        };
        let queues: Vec<Json> = (0..states.len()).map(queue).collect();
        let all = path.ends.flows();
        self.flows.resize(all.len(), (0, 0));
        let mut flows = Vec::new();
        for (at, (flow, seen)) in all.iter().zip(&mut self.flows).enumerate() {
            let number = path.ends.number(at);
            let Some(number) = number.filter(|number| *number < MOST_FLOWS) else {
                continue;
            };
            let trips = &flow.round_trips[seen.1..];
            let sum: u64 = trips.iter().map(|(_, micros)| u64::from(*micros)).sum();
            if flows.len() <= number {
                flows.resize(number + 1, Json::Null);
            }
            flows[number] = json!({
                "goodput_bps": (flow.received - seen.0) as f64 * 8.0 / EVERY.as_secs_f64(),
                "rtt_ms": (!trips.is_empty()).then(|| sum as f64 / trips.len() as f64 / 1e3),
            });
            *seen = (flow.received, flow.round_trips.len());
        }
        json!({
            "now_s": now.as_secs_f64(),
            "queues": queues,
            "flows": flows,
            "described": path.ends.described(),
        })
    }
}

/// Carries packets as [`Datapath::run`] does, while someone may watch.
///
/// # Errors
/// As there.
pub fn carry<E: Watched>(
    path: &mut Datapath<E>,
    live: &mut Option<Live>,
    control: BorrowedFd<'_>,
    end: Time,
) -> std::io::Result<bool> {
    loop {
        let until = live.as_ref().map_or(end, |live| live.next.min(end));
        if !path.run(control, until)? {
            return Ok(false);
        }
        if until == end {
            return Ok(true);
        }
        if live.as_mut().is_some_and(|live| !live.look(path, until)) {
            *live = None;
        }
    }
}
