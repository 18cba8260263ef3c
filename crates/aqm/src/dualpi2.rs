//! DualPI2: two queues with coupled marking for L4S and classic traffic (RFC 9332 Appendix A).
//!
//! ECT(1) and CE go to the L queue, everything else to the C queue. One PI controller on the longer of the two delays
//! computes p'. The C queue drops (or marks ECT(0)) with p_C = p'^2. The L queue marks with the larger of p_CL = k p'
//! and a ramp or step on its own delay. Both signals are spread evenly (`recur`), not at random. A weighted round
//! robin or a time-shifted FIFO gives the L queue priority without starving C.
//!
//! When p_CL reaches 1, marking is exhausted: classic packets are dropped whatever their ECN field, and the L queue
//! drops with p_C besides marking (RFC 9332 §4.2.3, Appendix A.2).
//!
//! With `nqb`, packets with the code point of non-queue-building traffic (RFC 9956) go to the L queue too. They need not be
//! ECN-capable, and then nothing but overload drops them there. With `queue_protection` a packet of a flow that builds
//! the L queue goes to the C queue ([`queue_protection`]).
//!
//! `variant = "linux"` is Linux's sch_dualpi2, whose rules differ ([`linux`]): 16 ms, 0.16 and 3.2 per second, a step at
//! 1 ms, random signals.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use sojourn_units::{Duration, Rate, Time};

use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::pi2::{Control, Controller, is_scalable};
use crate::qdisc::Qdisc;
use crate::verdict::DropReason;
use crate::{choice, parameters};

mod configuration;
pub mod linux;
pub mod queue_protection;

use linux::LinuxDualPi2;
use queue_protection::QueueProtection;

parameters! {
    /// The parameters of DualPI2 besides its controller's.
    pub struct Config {
        /// delay of an L4S packet at which its queue's own marking starts (minTh)
        pub min_thresh: Duration,
        /// delay above min_thresh at which that marking is certain; 0 ms: a step
        pub range: Duration,
        /// share of the link left to the classic queue by the weighted round robin
        pub c_protection: Option<f64> as Probability,
        /// weighted round robin, or time-shifted FIFO
        pub scheduler: Scheduler,
        /// time shift in favour of L4S packets in the time-shifted FIFO
        pub t_shift: Option<Duration>,
        /// packets that an L4S packet must find in its queue for the step to apply; with variant linux
        pub min_qlen_step: Option<u64>,
        /// NQB packets (code point 45) go to the L queue, too
        pub nqb: bool,
        /// packets of flows that build the L queue go to the classic queue (RFC 9957)
        pub queue_protection: bool,
        /// delay of the L queue above which a packet may be sent to the classic queue (CRITICALqL)
        pub critical_delay: Option<Duration> = "the end of the ramp",
        /// score of a flow that is too high at that delay (CRITICALqLSCORE)
        pub critical_score: Option<Duration> = "4 ms",
        /// rate of a flow's marked bytes at which its score stays as it is (AGING)
        pub aging: Option<Rate> = "4.194304 Mbit/s",
        /// the RFC's rules or Linux's
        pub variant: Variant,
    }
    besides {
        /// The controller's parameters.
        pub control: Control,
    }
}

choice! {
    /// How the two queues share the link.
    pub enum Scheduler {
        /// Weighted round robin, which leaves C a share of the bytes.
        Weighted = "wrr",
        /// By arrival time, with a shift in favour of L packets.
        TimeShifted = "ts_fifo",
    }
}

choice! {
    /// Which rules and defaults to follow.
    pub enum Variant {
        /// RFC 9332 Appendix A.1: alpha is 0.1 Tupdate / RTT_max^2 and beta 0.3 / RTT_max, for an RTT_max of 100 ms.
        Rfc9332 = "rfc9332",
        /// Linux's sch_dualpi2.
        Linux = "linux",
    }
}

impl Config {
    /// The defaults of a variant.
    pub const fn of(variant: Variant) -> Self {
        let (tupdate, alpha, beta) = match variant {
            Variant::Rfc9332 => (15, 0.15, 3.0),
            Variant::Linux => (16, 0.16, 3.2),
        };
        let (min_thresh, range) = match variant {
            Variant::Rfc9332 => (800, 400),
            Variant::Linux => (1000, 0),
        };
        Self {
            min_thresh: Duration::from_micros(min_thresh),
            range: Duration::from_micros(range),
            c_protection: Some(0.1),
            scheduler: Scheduler::Weighted,
            t_shift: Some(Duration::from_millis(50)),
            min_qlen_step: match variant {
                Variant::Rfc9332 => None,
                Variant::Linux => Some(0),
            },
            nqb: false,
            queue_protection: false,
            critical_delay: None,
            critical_score: None,
            aging: None,
            variant,
            control: Control {
                target: Duration::from_millis(15),
                tupdate: Duration::from_millis(tupdate),
                alpha,
                beta,
                coupling_factor: 2.0,
            },
        }
    }
}

impl Config {
    /// The parameters of queue protection on a link of `rate` with full frames of `mtu` bytes.
    fn protection(&self, rate: Rate, mtu: u32) -> queue_protection::Parameters {
        queue_protection::Parameters::new(
            (self.min_thresh, self.range),
            (
                self.critical_delay,
                self.critical_score
                    .unwrap_or(queue_protection::CRITICAL_SCORE),
            ),
            self.aging.unwrap_or(queue_protection::AGING),
            (rate, mtu),
        )
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::of(Variant::Rfc9332)
    }
}

/// The indices of L and C among the inner queues.
const LOW_LATENCY: u8 = 0;
const CLASSIC: u8 = 1;
/// Their names.
const NAMES: [&str; 2] = ["l", "c"];

/// The code point of non-queue-building traffic (RFC 9956).
const NQB: u8 = 45;

/// Linux's default limit in packets.
const LINUX_LIMIT: u64 = 10_000;

/// One of the two queues.
struct Queue<P> {
    packets: VecDeque<P>,
    bytes: u64,
    /// Accumulated likelihoods, reduced at each mark or drop.
    count: f64,
}

impl<P: Packet> Queue<P> {
    const fn new() -> Self {
        Self {
            packets: VecDeque::new(),
            bytes: 0,
            count: 0.0,
        }
    }

    fn push(&mut self, packet: P) {
        self.bytes += u64::from(packet.bytes());
        self.packets.push_back(packet);
    }

    fn pop(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes());
        Some(packet)
    }

    /// The sojourn time so far of the packet at the head; zero if the queue is empty.
    fn delay(&self, now: Time) -> Duration {
        self.packets
            .front()
            .map_or(Duration::ZERO, |head| now.saturating_since(head.enqueued()))
    }

    /// True once every 1/`likelihood` calls (the RFC's `recur`).
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        if self.count > 1.0 {
            self.count -= 1.0;
            return true;
        }
        false
    }
}

/// A probability that rises from 0 at a delay of `start` to 1 at `range` more.
fn on_ramp(delay: Duration, start: Duration, range: Duration) -> f64 {
    let excess = delay.saturating_sub(start);
    if excess.is_zero() {
        0.0
    } else if excess >= range {
        1.0
    } else {
        excess.as_secs_f64() / range.as_secs_f64()
    }
}

/// The coupled queues.
pub struct DualPi2<P> {
    config: Config,
    limit: Limit,
    controller: Controller,
    next_update: Time,
    low_latency: Queue<P>,
    classic: Queue<P>,
    /// Queue protection, and the rate of the link, which it needs to estimate L's delay.
    protection: Option<Box<(QueueProtection, Rate)>>,
    /// The weighted byte credit of C: L's bytes are weighted by C's share, C's bytes by L's.
    owed: f64,
}

impl<P: Packet> DualPi2<P> {
    /// Empty queues with a common limit.
    pub fn new(config: Config, limit: Limit) -> Self {
        Self {
            limit,
            controller: Controller::new(config.control),
            next_update: Time::ZERO + config.control.tupdate,
            low_latency: Queue::new(),
            classic: Queue::new(),
            protection: None,
            owed: 0.0,
            config,
        }
    }

    /// The same with queue protection, on a link of `rate` with full frames of `mtu` bytes.
    pub fn protected(mut self, rate: Rate, mtu: u32) -> Self {
        let parameters = self.config.protection(rate, mtu);
        self.protection = Some(Box::new((QueueProtection::new(parameters), rate)));
        self
    }

    /// True if a packet that arrives goes to the L queue.
    fn is_low_latency(&mut self, packet: &P, now: Time, env: &mut Environment<P>) -> bool {
        let is_nqb = self.config.nqb && packet.dscp() == NQB;
        if !is_nqb && !is_scalable(packet) {
            return false;
        }
        let Some(protection) = &mut self.protection else {
            return true;
        };
        let (protection, rate) = &mut **protection;
        let delay = rate.tx_time(self.low_latency.bytes);
        !protection.ejects(packet, delay, now, env)
    }

    /// p_C: probability of a classic signal.
    fn p_c(&self) -> f64 {
        self.controller.p() * self.controller.p()
    }

    /// p_CL: coupled probability of an L4S mark; 1 or more in overload.
    fn p_cl(&self) -> f64 {
        self.config.control.coupling_factor * self.controller.p()
    }

    /// p'_L: the L queue's own marking probability, from the delay of its packet.
    fn native(&self, delay: Duration) -> f64 {
        on_ramp(delay, self.config.min_thresh, self.config.range)
    }

    /// True if the L queue is served next.
    fn serves_low_latency(&mut self, now: Time) -> bool {
        if self.low_latency.packets.is_empty() || self.classic.packets.is_empty() {
            self.owed = 0.0;
            return self.classic.packets.is_empty();
        }
        match self.config.scheduler {
            Scheduler::Weighted => self.owed <= 0.0,
            Scheduler::TimeShifted => {
                let shift = self.config.t_shift.unwrap_or(Duration::ZERO);
                self.low_latency
                    .delay(now)
                    .as_nanos()
                    .saturating_add(shift.as_nanos())
                    >= self.classic.delay(now).as_nanos()
            }
        }
    }

    fn next_low_latency(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        let mut packet = self.low_latency.pop()?;
        if let (Scheduler::Weighted, Some(c_protection)) =
            (self.config.scheduler, self.config.c_protection)
        {
            self.owed += c_protection * f64::from(packet.bytes());
        }
        // A single packet in the queue is never marked for its delay (Th_len).
        let native = if self.low_latency.packets.is_empty() {
            0.0
        } else {
            self.native(now.saturating_since(packet.enqueued()))
        };
        let p_cl = self.p_cl();
        if p_cl >= 1.0 {
            let p_c = self.p_c();
            if self.low_latency.recur(p_c) {
                env.drop(packet, DropReason::Aqm);
                return None;
            }
            if packet.ecn().is_capable() {
                env.mark(&mut packet);
            }
        } else if packet.ecn().is_capable() && self.low_latency.recur(native.max(p_cl)) {
            env.mark(&mut packet);
        }
        Some(packet)
    }

    fn next_classic(&mut self, env: &mut Environment<P>) -> Option<P> {
        let mut packet = self.classic.pop()?;
        if let (Scheduler::Weighted, Some(c_protection)) =
            (self.config.scheduler, self.config.c_protection)
        {
            self.owed -= (1.0 - c_protection) * f64::from(packet.bytes());
        }
        let p_c = self.p_c();
        if self.classic.recur(p_c) {
            if !packet.ecn().is_capable() || self.p_cl() >= 1.0 {
                env.drop(packet, DropReason::Aqm);
                return None;
            }
            env.mark(&mut packet);
        }
        Some(packet)
    }
}

impl<P: Packet> Qdisc<P> for DualPi2<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        let is_low_latency = self.is_low_latency(&packet, now, env);
        packet.set_inner_queue(if is_low_latency { LOW_LATENCY } else { CLASSIC });
        if !self
            .limit
            .has_room(self.packets(), self.bytes(), packet.bytes())
        {
            return env.drop(packet, DropReason::Overflow);
        }
        if is_low_latency {
            self.low_latency.push(packet);
        } else {
            self.classic.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        while self.packets() > 0 {
            let next = if self.serves_low_latency(now) {
                self.next_low_latency(now, env)
            } else {
                self.next_classic(env)
            };
            if next.is_some() {
                return next;
            }
        }
        None
    }

    fn packets(&self) -> u64 {
        (self.low_latency.packets.len() + self.classic.packets.len()) as u64
    }

    fn bytes(&self) -> u64 {
        self.low_latency.bytes + self.classic.bytes
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_timer(&mut self, now: Time, _env: &mut Environment<P>) {
        let longer = self.classic.delay(now).max(self.low_latency.delay(now));
        self.controller.update(longer);
        self.next_update = now.saturating_add(self.config.control.tupdate);
    }

    fn inner_queues(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("p_prime", self.controller.p());
        visit("probability", self.p_c());
        visit("probability_l", self.p_cl().min(1.0));
        visit("qdelay_ms", self.controller.delay().as_millis_f64());
        if let Some(protection) = &self.protection {
            visit("ejected", protection.0.ejected() as f64);
        }
    }
}

/// `dualpi2`.
pub fn dualpi2<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "dualpi2",
        summary: "dual queue for L4S and classic traffic with coupled marking",
        source: "RFC 9332",
        keys: Box::new(configuration::keys),
        make: Box::new(|settings| {
            let config = configuration::config(settings)?;
            if config.variant == Variant::Linux {
                let limit = settings.limit_or(Limit::Packets(LINUX_LIMIT));
                return Ok(Box::new(LinuxDualPi2::new(config, limit, settings.mtu)));
            }
            // RFC 9332 A.1: a quarter of a second at the link's rate.
            let bytes = settings.rate.bytes_in(Duration::from_millis(250));
            let limit = settings.limit_or(Limit::Bytes(bytes.max(2 * u64::from(settings.mtu))));
            let queues = DualPi2::new(config, limit);
            Ok(Box::new(if config.queue_protection {
                queues.protected(settings.rate, settings.mtu)
            } else {
                queues
            }))
        }),
    }
}

#[cfg(test)]
mod tests;
