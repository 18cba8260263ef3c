//! RED: random early detection (Floyd and Jacobson 1993; gentle slope: Floyd 2000).
//!
//! On arrival, an exponentially weighted average of the queue length decides. Below `min` a packet passes. Between the
//! thresholds it is dropped or marked with a probability that rises to `probability`. At `max` (gentle: at twice
//! `max`) every packet is dropped or marked.
//!
//! Two implementations of the rule: [`floyd`] as published, [`linux`] as in Linux's sch_red with the parameters that
//! tc derives. [`crate::ared`] adapts `probability`.
//!
//! Departure from the paper: with `harddrop` off, ECN-capable packets are marked above `max` too, as in Linux.

use alloc::boxed::Box;

use sojourn_units::{Duration, Rate, Time};

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters::Parameters as _;
use crate::single::Single;
use crate::verdict::Verdict;
use crate::{ce_exclude, choice};

pub mod floyd;
pub mod linux;
mod settings;

use floyd::Floyd;
use linux::Linux;
pub(crate) use settings::{Parameters, WHICH, bytes, config, keys, keys_but};

/// The parameters of RED.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The unit of `min` and `max`.
    pub unit: Unit,
    /// th_min: average below which nothing is dropped, in `unit`.
    pub min: u64,
    /// th_max: average at which the probability reaches `max_p`, in `unit`. Above `min`.
    pub max: u64,
    /// max_p: drop probability at `max`.
    pub max_p: f64,
    /// w_q: weight of the current queue length in the average, above 0 and at most 1.
    pub weight: f64,
    /// Let the probability rise from `max_p` at `max` to 1 at twice `max`, instead of jumping to 1.
    pub gentle: bool,
    /// Wait for 1/p packets before the next drop: gaps of 1/p to 2/p packets (ns-2's `wait_`) instead of 1 to 1/p.
    pub wait: bool,
    /// Scale the probability by packet size over `avpkt` (the paper's byte mode).
    pub bytemode: bool,
    /// Mean packet size in bytes.
    pub avpkt: u32,
    /// Rate by which idle time is counted in packets.
    pub bandwidth: Rate,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Drop ECN-capable packets too when the average is so high that none may pass.
    pub harddrop: bool,
    /// Leave CE-marked packets out of the average, unless the queue is above twice `max`.
    pub ce_exclude: bool,
    /// The arithmetic.
    pub variant: Variant,
}

/// The unit of the thresholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
}

choice! {
    /// Which RED to follow.
    pub enum Variant {
        /// As published, in floating point.
        Floyd = "floyd",
        /// Linux's fixed point; no gentle slope, no byte mode, thresholds in bytes.
        Linux = "linux",
    }
}

/// The decision of RED's rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    Pass,
    /// Dropped or marked at random.
    Early,
    /// Dropped or marked because the average is too high for any packet to pass.
    Forced,
}

/// RED for one queue.
pub struct Red {
    config: Config,
    pub(crate) rule: Rule,
}

pub(crate) enum Rule {
    Floyd(Floyd),
    // Boxed because its table of idle decay is large.
    Linux(Box<Linux>),
}

impl Red {
    /// A RED before its first packet.
    pub fn new(config: Config) -> Self {
        let rule = match config.variant {
            Variant::Floyd => Rule::Floyd(Floyd::new(config)),
            Variant::Linux => Rule::Linux(Box::new(Linux::new(config))),
        };
        Self { config, rule }
    }

    /// Its parameters.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The queue length that is averaged, in the thresholds' unit.
    fn measure(&self, backlog: Backlog) -> u64 {
        let queue = match self.config.unit {
            Unit::Packets => backlog.packets,
            Unit::Bytes => backlog.bytes,
        };
        if self.config.ce_exclude && queue <= self.config.max.saturating_mul(2) {
            ce_exclude::unmarked_part(queue, backlog)
        } else {
            queue
        }
    }

    /// The average queue length in the thresholds' unit.
    pub fn average(&self) -> f64 {
        match &self.rule {
            Rule::Floyd(floyd) => floyd.average(),
            Rule::Linux(linux) => linux.average(),
        }
    }

    /// The current max_p.
    pub fn max_p(&self) -> f64 {
        match &self.rule {
            Rule::Floyd(floyd) => floyd.max_p(),
            Rule::Linux(linux) => linux.max_p(),
        }
    }
}

impl Red {
    /// Updates the average by the queue that an arrival finds.
    pub(crate) fn observe(&mut self, backlog: Backlog, now: Time) {
        let queue = self.measure(backlog);
        match &mut self.rule {
            Rule::Floyd(floyd) => floyd.observe(queue, now),
            Rule::Linux(linux) => linux.observe(queue, now),
        }
    }

    /// Notes that a packet has left, with `backlog` remaining. Idle time starts when the queue is empty (Figure 2:
    /// "when queue becomes empty"); in Linux only when a packet is then requested.
    pub(crate) fn on_departure(&mut self, backlog: Backlog, now: Time) {
        match &mut self.rule {
            Rule::Floyd(floyd) if backlog.packets == 0 => floyd.on_empty(now),
            Rule::Floyd(_) | Rule::Linux(_) => {}
        }
    }

    /// Decides about the observed arrival. If it is dropped at an empty queue, the idle time continues, because the
    /// next arrival finds the queue just as empty.
    pub(crate) fn decide<P: Packet>(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        let verdict = self.judge(packet, env);
        if verdict.is_drop() {
            self.on_departure(backlog, now);
        }
        verdict
    }

    fn judge<P: Packet>(&mut self, packet: &P, env: &mut Environment<P>) -> Verdict {
        let decision = match &mut self.rule {
            Rule::Floyd(floyd) => floyd.decide(packet.bytes(), &mut || env.uniform()),
            Rule::Linux(linux) => linux.decide(&mut || env.random_u64()),
        };
        let markable = self.config.ecn && packet.ecn().is_capable();
        match decision {
            Decision::Pass => Verdict::Pass,
            Decision::Forced if self.config.harddrop => Verdict::DROP,
            Decision::Early | Decision::Forced if markable => Verdict::Mark,
            Decision::Early | Decision::Forced => Verdict::DROP,
        }
    }
}

impl<P: Packet> Aqm<P> for Red {
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        self.observe(backlog, now);
        self.decide(packet, backlog, now, env)
    }

    fn on_dequeue(
        &mut self,
        _packet: &P,
        backlog: Backlog,
        now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        self.on_departure(backlog, now);
        Verdict::Pass
    }
}

impl Algorithm for Red {
    fn on_overflow(&mut self, backlog: Backlog, now: Time) {
        self.observe(backlog, now);
        if let Rule::Floyd(floyd) = &mut self.rule {
            floyd.on_loss();
        }
    }

    fn on_empty(&mut self, now: Time) {
        if let Rule::Linux(linux) = &mut self.rule {
            linux.on_empty(now);
        }
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("avg", self.average());
        visit("max_p", self.max_p());
    }
}

/// `red`.
pub fn red<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "red",
        summary: "random early detection: drops on arrival by the average queue length",
        source: "Floyd and Jacobson 1993",
        keys: Box::new(|| [keys(), WHICH.keys()].concat()),
        make: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            let variant = WHICH.given(settings)?.variant;
            let red = Red::new(config(settings, variant, limit)?);
            Ok(Box::new(Single::new(red, limit)))
        }),
    }
}

/// Transmission time of a packet of mean size.
pub(crate) fn slot(config: &Config) -> Duration {
    config.bandwidth.tx_time(u64::from(config.avpkt))
}

#[cfg(test)]
mod tests;
