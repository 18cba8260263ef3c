//! One-way datagrams: constant rate, on-off, telephony, games.

use sojourn_units::{Duration, Rate, Time};

use crate::alternation::Alternation;
use crate::application::Identity;
use crate::direction::Direction;
use crate::game;
use crate::jitter::Jitter;
use crate::kind::{Kind, Transport};
use crate::streams::Stream;

/// The datagrams of a flow: when each is due, and how large it is.
pub struct Datagrams {
    start: Time,
    stop: Time,
    pattern: Pattern,
    jitter: Jitter,
    /// When the next datagram is due by the pattern, and its payload.
    next: (Time, u32),
    /// When it is sent.
    sending: Time,
    number: u64,
}

/// The timing and sizes of datagrams.
enum Pattern {
    /// At a rate. Times are computed from the start, so that rounding errors do not accumulate.
    Rate { rate: Rate, payload: u32 },
    /// Evenly spaced.
    Spaced { interval: Duration, payload: u32 },
    /// At a rate during on times; `sent` counts since the current one began.
    OnOff {
        alternation: Alternation,
        on: (Time, Time),
        rate: Rate,
        payload: u32,
        sent: u64,
    },
    /// One side of a game.
    Game { direction: Direction, draws: Stream },
}

impl Datagrams {
    /// A flow of this kind before its start; `None` if the kind does not send one-way datagrams.
    pub fn new(identity: &Identity, kind: &Kind, seed: u64) -> Option<Self> {
        let mut pattern = match kind {
            Kind::Cbr(cbr) => Pattern::Rate {
                rate: cbr.rate,
                payload: cbr.packet,
            },
            Kind::Voip(voip) => Pattern::Spaced {
                interval: voip.interval,
                payload: voip.packet,
            },
            Kind::OnOff(config) => {
                let Transport::Udp(rate) = config.transport else {
                    return None;
                };
                let mut alternation = Alternation::new(identity, config, seed);
                Pattern::OnOff {
                    on: alternation.next_on(),
                    alternation,
                    rate,
                    payload: config.packet,
                    sent: 0,
                }
            }
            Kind::Game => Pattern::Game {
                direction: identity.direction,
                draws: Stream::new(seed, &format!("flow/{}/game", identity.flow)),
            },
            _ => return None,
        };
        let next = pattern.next(identity.start, 0, identity.start);
        let mut jitter = Jitter::new(identity.jitter, identity.flow, seed);
        Some(Self {
            sending: jitter.late(next.0),
            next,
            pattern,
            jitter,
            number: 0,
            start: identity.start,
            stop: identity.stop,
        })
    }

    /// When the next datagram is due.
    pub fn next_due(&self) -> Option<Time> {
        Some(self.sending).filter(|due| *due < self.stop)
    }

    /// Takes the next datagram if it is due: its number and its payload bytes.
    pub fn take_due(&mut self, now: Time) -> Option<(u64, u32)> {
        self.next_due().filter(|due| *due <= now)?;
        let (due, payload) = self.next;
        let taken = (self.number, payload);
        self.number += 1;
        self.next = self.pattern.next(self.start, self.number, due);
        self.sending = self.jitter.late(self.next.0);
        Some(taken)
    }
}

impl Pattern {
    /// When datagram `number` of a flow that started at `start` is due, and its payload; the previous one was due at
    /// `last`.
    fn next(&mut self, start: Time, number: u64, last: Time) -> (Time, u32) {
        match self {
            Self::Rate { rate, payload } => {
                let offset = rate.tx_time(number.saturating_mul((*payload).into()));
                (start.saturating_add(offset), *payload)
            }
            Self::Spaced { interval, payload } => (
                start.saturating_add(interval.saturating_mul(number)),
                *payload,
            ),
            Self::OnOff {
                alternation,
                on,
                rate,
                payload,
                sent,
            } => loop {
                let due =
                    on.0.saturating_add(rate.tx_time(sent.saturating_mul((*payload).into())));
                if due < on.1 {
                    *sent += 1;
                    return (due, *payload);
                }
                *on = alternation.next_on();
                *sent = 0;
            },
            Self::Game { direction, draws } => {
                let (gap, payload) = game::next(*direction, draws);
                let due = if number == 0 { start } else { last + gap };
                (due, payload)
            }
        }
    }
}
