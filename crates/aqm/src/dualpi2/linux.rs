//! DualPI2 as in Linux 6.17 (sch_dualpi2). It differs from RFC 9332 Appendix A as follows:
//!
//! - Signals are drawn at random. A classic signal needs two draws below p'.
//! - No packet is signalled while less than two full frames remain queued.
//! - The L queue's own marking is a step: every packet whose delay is above `min_thresh` is marked, whatever p' is. A
//!   packet is exempt if it found fewer than `min_qlen_step` packets in L when it arrived.
//! - C's credit is kept while one of the queues is empty. It starts at a frame times C's share less L's share, which is
//!   below zero, so L goes first: with shares of 10 and 90 %, L sends nine frames before C sends one.

use alloc::collections::VecDeque;

use sojourn_units::Time;

use super::{CLASSIC, Config, LOW_LATENCY, NAMES};
use crate::environment::Environment;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::pi2::{Controller, is_scalable};
use crate::qdisc::Qdisc;
use crate::verdict::DropReason;

/// The fewest full frames that must remain queued for a packet to be signalled.
const FLOOR_FRAMES: u64 = 2;

/// Linux's coupled queues.
pub struct LinuxDualPi2<P> {
    config: Config,
    limit: Limit,
    mtu: u32,
    controller: Controller,
    next_update: Time,
    /// Each packet, and whether the step applies to it.
    low_latency: VecDeque<(P, bool)>,
    classic: VecDeque<P>,
    bytes: u64,
    /// C is served if this is above zero. A packet from L adds its bytes times C's share, a packet from C subtracts its bytes
    /// times L's share. In bytes times percent, as in Linux, whose shares are whole percent.
    credit: i64,
}

impl<P: Packet> LinuxDualPi2<P> {
    /// Empty queues with a common limit, for full frames of `mtu` bytes.
    pub fn new(config: Config, limit: Limit, mtu: u32) -> Self {
        let mut queues = Self {
            limit,
            mtu,
            controller: Controller::new(config.control),
            next_update: Time::ZERO + config.control.tupdate,
            low_latency: VecDeque::new(),
            classic: VecDeque::new(),
            bytes: 0,
            credit: 0,
            config,
        };
        queues.reset_credit();
        queues
    }

    /// C's share of the link in percent.
    fn share(&self) -> i64 {
        libm::round(100.0 * self.config.c_protection.unwrap_or(0.0)) as i64
    }

    fn reset_credit(&mut self) {
        let share = self.share();
        self.credit = i64::from(self.mtu) * (share - (100 - share));
    }

    /// k p'. It exceeds 1 in overload.
    fn p_cl(&self) -> f64 {
        self.config.control.coupling_factor * self.controller.p()
    }

    /// True with the probability p'^2.
    fn rolls_classic(&self, env: &mut Environment<P>) -> bool {
        let p = self.controller.p();
        env.uniform() < p && env.uniform() < p
    }

    /// Applies the controller's decision to a packet that is about to leave. Returns `None` if the packet must be dropped.
    fn signal(&self, packet: &mut P, is_l4s: bool, env: &mut Environment<P>) -> Option<()> {
        if self.bytes < FLOOR_FRAMES * u64::from(self.mtu) {
            return Some(());
        }
        let p_cl = self.p_cl();
        let overload = p_cl > 1.0;
        let marks = if is_l4s {
            if overload && self.rolls_classic(env) {
                return None;
            }
            overload || env.uniform() < p_cl
        } else {
            let signals = self.rolls_classic(env);
            if signals && (overload || !packet.ecn().is_capable()) {
                return None;
            }
            signals
        };
        if marks {
            env.mark(packet);
        }
        Some(())
    }

    fn next_low_latency(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        let (mut packet, steps) = self.low_latency.pop_front()?;
        self.bytes -= u64::from(packet.bytes());
        let marked_before = env.marked();
        if self.signal(&mut packet, true, env).is_none() {
            env.drop(packet, DropReason::Aqm);
            return None;
        }
        let late = now.saturating_since(packet.enqueued()) > self.config.min_thresh;
        if steps && late && env.marked() == marked_before {
            env.mark(&mut packet);
        }
        if !self.classic.is_empty() {
            self.credit += self.share() * i64::from(packet.bytes());
        }
        Some(packet)
    }

    fn next_classic(&mut self, env: &mut Environment<P>) -> Option<P> {
        let mut packet = self.classic.pop_front()?;
        self.bytes -= u64::from(packet.bytes());
        if self.signal(&mut packet, false, env).is_none() {
            env.drop(packet, DropReason::Aqm);
            return None;
        }
        if !self.low_latency.is_empty() {
            self.credit -= (100 - self.share()) * i64::from(packet.bytes());
        }
        Some(packet)
    }
}

impl<P: Packet> Qdisc<P> for LinuxDualPi2<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        let is_l4s = is_scalable(&packet);
        packet.set_inner_queue(if is_l4s { LOW_LATENCY } else { CLASSIC });
        if !self
            .limit
            .has_room(self.packets(), self.bytes, packet.bytes())
        {
            return env.drop(packet, DropReason::Overflow);
        }
        self.bytes += u64::from(packet.bytes());
        if is_l4s {
            let least = self.config.min_qlen_step.unwrap_or(0);
            let steps = self.low_latency.len() as u64 >= least;
            self.low_latency.push_back((packet, steps));
        } else {
            self.classic.push_back(packet);
        }
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        while self.packets() > 0 {
            let serves_l = self.classic.is_empty() || self.credit <= 0;
            let next = if serves_l && !self.low_latency.is_empty() {
                self.next_low_latency(now, env)
            } else {
                self.next_classic(env)
            };
            if next.is_some() {
                return next;
            }
        }
        self.reset_credit();
        None
    }

    fn packets(&self) -> u64 {
        (self.low_latency.len() + self.classic.len()) as u64
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_timer(&mut self, now: Time, _env: &mut Environment<P>) {
        let waited = |head: Option<&P>| head.map(|packet| now.saturating_since(packet.enqueued()));
        let l = waited(self.low_latency.front().map(|(packet, _)| packet));
        let c = waited(self.classic.front());
        self.controller.update(l.max(c).unwrap_or_default());
        self.next_update = now.saturating_add(self.config.control.tupdate);
    }

    fn inner_queues(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let p = self.controller.p();
        visit("p_prime", p);
        visit("probability", p * p);
        visit("probability_l", self.p_cl().min(1.0));
        visit("qdelay_ms", self.controller.delay().as_millis_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;
    use crate::dualpi2::Variant;
    use crate::packet::Ecn;
    use alloc::vec::Vec;
    use sojourn_units::Duration;

    const FRAME: u32 = 1514;

    fn queues(change: impl Fn(&mut Config)) -> LinuxDualPi2<Datagram<u64>> {
        let mut config = Config::of(Variant::Linux);
        change(&mut config);
        LinuxDualPi2::new(config, Limit::Packets(1_000_000), FRAME)
    }

    fn offer(queues: &mut LinuxDualPi2<Datagram<u64>>, ecn: Ecn, count: u64, at: Time) {
        let mut env = Environment::new(0);
        for id in 0..count {
            let packet = Datagram {
                ecn,
                ..Datagram::new(id, 1514)
            };
            queues.enqueue(packet, at, &mut env);
        }
    }

    /// p' by one update from zero: (alpha + beta) d - alpha target.
    fn raise(queues: &mut LinuxDualPi2<Datagram<u64>>, p: f64) {
        let control = queues.config.control;
        let delay =
            (p + control.alpha * control.target.as_secs_f64()) / (control.alpha + control.beta);
        queues.controller.update(Duration::from_secs_f64(delay));
    }

    /// Five packets in overload: every draw is certain. The last two leave less than two frames behind, so only three are
    /// signalled.
    #[test]
    fn no_signal_while_less_than_two_frames_remain() {
        for (ecn, marked, dropped) in [(Ecn::Ect1, 0, 3), (Ecn::Ect0, 0, 3)] {
            let mut queues = queues(|_| ());
            raise(&mut queues, 1.0);
            offer(&mut queues, ecn, 5, Time::ZERO);
            let mut env = Environment::new(0);
            let left = core::iter::from_fn(|| queues.dequeue(Time::ZERO, &mut env)).count();
            let got = (env.marked(), env.take_dropped().count());
            assert_eq!((got, left), ((marked, dropped), 2), "{ecn:?}");
        }
    }

    /// p' = 0.2: a share of 0.04 of classic packets and 0.4 of L4S packets are signalled, within four standard deviations of
    /// 10 000 draws.
    #[test]
    fn signals_are_drawn() {
        for (ecn, share) in [(Ecn::Ect0, 0.04), (Ecn::Ect1, 0.4)] {
            let mut queues = queues(|_| ());
            raise(&mut queues, 0.2);
            offer(&mut queues, ecn, 10_000, Time::ZERO);
            let mut env = Environment::new(1);
            while queues.dequeue(Time::ZERO, &mut env).is_some() {}
            let got = env.marked() as f64 / 10_000.0;
            assert!(
                (got - share).abs() < 4.0 * (share / 10_000.0_f64).sqrt(),
                "{got}"
            );
        }
    }

    /// All packets have waited for 2 ms. With the default every packet is marked; otherwise only those that found two or more
    /// packets in the queue.
    #[test]
    fn the_step_marks_packets_that_found_a_queue() {
        for (least, marked) in [(None, 5), (Some(0), 5), (Some(2), 3)] {
            let mut queues = queues(|config| config.min_qlen_step = least);
            offer(&mut queues, Ecn::Ect1, 5, Time::ZERO);
            let mut env = Environment::new(0);
            while queues.dequeue(Time::from_millis(2), &mut env).is_some() {}
            assert_eq!(env.marked(), marked, "{least:?}");
        }
        let mut at_the_threshold = queues(|_| ());
        offer(&mut at_the_threshold, Ecn::Ect1, 5, Time::ZERO);
        let mut env = Environment::new(0);
        while at_the_threshold
            .dequeue(Time::from_millis(1), &mut env)
            .is_some()
        {}
        assert_eq!(env.marked(), 0);
    }

    /// The credit begins at -0.8 frames and grows by a tenth with each L packet: it is zero after eight and positive after
    /// nine. A C packet takes 0.9.
    #[test]
    fn l_goes_first_and_c_gets_a_tenth() {
        let mut queues = queues(|_| ());
        offer(&mut queues, Ecn::Ect1, 100, Time::ZERO);
        offer(&mut queues, Ecn::NotEct, 100, Time::ZERO);
        let mut env = Environment::new(0);
        let classic: Vec<usize> = (0..30)
            .filter(|_| {
                let packet = queues.dequeue(Time::ZERO, &mut env).expect("queued");
                packet.ecn == Ecn::NotEct
            })
            .collect();
        assert_eq!(classic, [9, 19, 29]);
    }

    #[test]
    fn the_credit_is_kept_while_a_queue_is_empty() {
        let mut queues = queues(|config| config.c_protection = Some(0.25));
        offer(&mut queues, Ecn::Ect1, 3, Time::ZERO);
        offer(&mut queues, Ecn::NotEct, 1, Time::ZERO);
        let mut env = Environment::new(0);
        let mut next = |queues: &mut LinuxDualPi2<Datagram<u64>>| {
            queues.dequeue(Time::ZERO, &mut env).expect("queued").ecn
        };
        for _ in 0..3 {
            assert_eq!(next(&mut queues), Ecn::Ect1);
        }
        assert_eq!(next(&mut queues), Ecn::NotEct);
        // C sent while L was empty, which does not change the credit.
        offer(&mut queues, Ecn::Ect1, 1, Time::ZERO);
        offer(&mut queues, Ecn::NotEct, 1, Time::ZERO);
        assert_eq!(next(&mut queues), Ecn::NotEct);
    }
}
