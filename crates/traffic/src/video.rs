//! A player of adaptive video. It requests one segment after another, each at the highest media rate that the expected
//! throughput allows, and waits while its buffer is full.
//!
//! The expected throughput is the harmonic mean of the last five segments' (Yin et al. 2015). The media rate is the
//! highest at or below 0.85 of it (as FESTIVE, Jiang et al. 2012), and the lowest for the first segment. Playback
//! begins with the first segment, and again with the first after a stall.

use std::collections::VecDeque;

use crate::kind::Video;
use sojourn_units::{Duration, Rate, Time};

use crate::application::{Application, Connections, Id, Identity, Meter, Side};
use crate::http::{Exchanges, Progress};

/// Bytes of a request.
const REQUEST: u64 = 400;
/// Segments in the throughput average.
const REMEMBERED: usize = 5;
/// The largest ratio of media rate to expected throughput.
const PRUDENCE: f64 = 0.85;

/// A player.
pub struct Player {
    config: Video,
    stop: Time,
    exchanges: Exchanges,
    connection: Option<Id>,
    /// When the next segment is requested; `None` while one is in transit.
    next: Option<Time>,
    throughputs: VecDeque<f64>,
    /// The level of the last requested segment.
    level: usize,
    began: Time,
    buffer: Buffer,
}

/// The media time in the player's buffer.
#[derive(Default)]
struct Buffer {
    /// The content at time `at`.
    held: Duration,
    at: Time,
    /// Playback has begun. It is stalled if the buffer has run empty since.
    started: bool,
}

impl Buffer {
    /// Plays until `now`. Returns the time without anything to play.
    fn play(&mut self, now: Time) -> Duration {
        let elapsed = now - self.at;
        self.at = now;
        if !self.started {
            return Duration::ZERO;
        }
        let stalled = elapsed.saturating_sub(self.held);
        self.held = self.held.saturating_sub(elapsed);
        stalled
    }
}

impl Player {
    /// A player before its start.
    pub fn new(identity: &Identity, config: &Video) -> Self {
        Self {
            config: config.clone(),
            stop: identity.stop,
            exchanges: Exchanges::default(),
            connection: None,
            next: Some(identity.start),
            throughputs: VecDeque::with_capacity(REMEMBERED),
            level: 0,
            began: identity.start,
            buffer: Buffer::default(),
        }
    }

    /// Chooses the level of the next segment.
    fn choose(&self) -> usize {
        let inverses: f64 = self.throughputs.iter().map(|bps| 1.0 / bps).sum();
        let expected = self.throughputs.len() as f64 / inverses;
        let fits = |rate: &Rate| rate.as_bps() as f64 <= PRUDENCE * expected;
        self.config.ladder.iter().rposition(fits).unwrap_or(0)
    }

    fn rate(&self) -> Rate {
        self.config.ladder[self.level]
    }

    fn on_segment(&mut self, after: Duration, now: Time, meter: &mut dyn Meter) {
        let bits = self.rate().bytes_in(self.config.segment) as f64 * 8.0;
        if self.throughputs.len() == REMEMBERED {
            self.throughputs.pop_front();
        }
        self.throughputs.push_back(bits / after.as_secs_f64());
        let stalled = self.buffer.play(now);
        self.buffer.held = self.buffer.held + self.config.segment;
        let first = !std::mem::replace(&mut self.buffer.started, true);
        if first {
            meter.playing_began(now - self.began);
        }
        meter.segment(self.rate(), stalled);
        // The next segment must fit in the buffer when it arrives, which may be at once.
        let over = (self.buffer.held + self.config.segment).saturating_sub(self.config.buffer);
        self.next = Some(now + over);
    }
}

impl Application for Player {
    fn next_timer(&self) -> Option<Time> {
        self.next.filter(|next| *next < self.stop)
    }

    fn on_timer(&mut self, now: Time, connections: &mut dyn Connections, _: &mut dyn Meter) {
        self.next = None;
        if !self.throughputs.is_empty() {
            self.level = self.choose();
        }
        let id = *self
            .connection
            .get_or_insert_with(|| connections.open(Side::Receiving));
        self.exchanges.request(connections, id, REQUEST, now);
    }

    fn on_arrival(
        &mut self,
        id: Id,
        side: Side,
        now: Time,
        connections: &mut dyn Connections,
        meter: &mut dyn Meter,
    ) {
        match self.exchanges.on_arrival(connections, id, side, now) {
            Some(Progress::Asked) => {
                let bytes = self.rate().bytes_in(self.config.segment).max(1);
                self.exchanges.respond(connections, id, bytes);
            }
            Some(Progress::Answered(after)) => self.on_segment(after, now, meter),
            None => {}
        }
    }

    /// Retries a handshake that failed.
    fn on_end(&mut self, id: Id, now: Time, _: &mut dyn Connections, _: &mut dyn Meter) {
        if self.connection == Some(id) {
            self.connection = None;
            if self.exchanges.on_end(id) {
                self.next = Some(now);
            }
        }
    }
}
