//! One FIFO with a limit, governed by an [`Aqm`].

use alloc::collections::VecDeque;

use sojourn_units::Time;

use crate::aqm::{Aqm, Backlog};
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::{Packet, ce_bytes};
use crate::qdisc::Qdisc;
use crate::settings::Settings;
use crate::verdict::{DropReason, Verdict};

/// A FIFO whose [`Aqm`] decides about every packet at arrival and at departure.
///
/// A packet that does not fit is dropped before the algorithm sees it.
pub struct Single<P, A> {
    aqm: A,
    limit: Limit,
    /// Packets and bursts of them.
    queue: VecDeque<P>,
    packets: u64,
    bytes: u64,
    ce_bytes: u64,
}

impl<P: Packet, A: Aqm<P>> Single<P, A> {
    /// An empty queue that holds at most `limit`.
    pub fn new(aqm: A, limit: Limit) -> Self {
        Self {
            aqm,
            limit,
            queue: VecDeque::new(),
            packets: 0,
            bytes: 0,
            ce_bytes: 0,
        }
    }

    /// The algorithm, to read its state.
    pub const fn aqm(&self) -> &A {
        &self.aqm
    }

    fn backlog(&self) -> Backlog {
        Backlog {
            packets: self.packets,
            bytes: self.bytes,
            ce_bytes: self.ce_bytes,
            qdisc_bytes: self.bytes,
        }
    }

    /// Decides about a packet that arrives.
    #[inline(always)]
    fn judge(&mut self, packet: &P, now: Time, env: &mut Environment<P>) -> Verdict {
        let backlog = self.backlog();
        let (packets, bytes) = (backlog.packets, backlog.bytes);
        if !self.limit.has_room(packets, bytes, packet.bytes()) {
            self.aqm.on_overflow(backlog, now);
            return Verdict::Drop(DropReason::Overflow);
        }
        self.aqm.on_enqueue(packet, backlog, now, env)
    }

    /// Returns a packet that arrives, with its mark, if it is to be queued.
    #[inline(always)]
    fn admit(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) -> Option<P> {
        packet.set_enqueued(now);
        let verdict = self.judge(&packet, now, env);
        env.carry_out(verdict, packet)
    }

    /// Counts a packet of a burst if it stays; else says why not.
    #[inline(always)]
    fn admit_next(
        &mut self,
        packet: &P,
        now: Time,
        env: &mut Environment<P>,
    ) -> Option<DropReason> {
        let verdict = self.judge(packet, now, env);
        if let Verdict::Drop(reason) = verdict.for_packet(packet) {
            return Some(reason);
        }
        self.packets += 1;
        self.bytes += u64::from(packet.bytes());
        None
    }

    /// As [`Qdisc::enqueue_burst`], of an algorithm that passes all arrivals: the limit decides alone.
    #[inline(always)]
    fn enqueue_as_fits(&mut self, burst: P, now: Time) -> Option<(P, u32, DropReason)> {
        let (count, bytes) = (1 + burst.followers(), burst.bytes());
        let admitted = self.limit.room(self.packets, self.bytes, bytes, count);
        self.packets += u64::from(admitted);
        self.bytes += u64::from(admitted) * u64::from(bytes);
        if admitted < count {
            self.aqm.on_overflow(self.backlog(), now);
            return Some((burst, admitted, DropReason::Overflow));
        }
        self.queue.push_back(burst);
        None
    }

    /// Decides about a packet that was taken from the head; returns it, with its mark, if it is to be sent.
    #[inline(always)]
    fn release(&mut self, packet: P, now: Time, env: &mut Environment<P>) -> Option<P> {
        let verdict = self.aqm.on_dequeue(&packet, self.backlog(), now, env);
        let packet = env.carry_out(verdict, packet)?;
        if self.packets == 0 {
            self.aqm.on_drained(now);
        }
        Some(packet)
    }
}

impl<P: Packet, A: Aqm<P>> Qdisc<P> for Single<P, A> {
    fn enqueue(&mut self, packet: P, now: Time, env: &mut Environment<P>) {
        if let Some(packet) = self.admit(packet, now, env) {
            self.packets += 1;
            self.bytes += u64::from(packet.bytes());
            self.ce_bytes += ce_bytes(&packet);
            self.queue.push_back(packet);
        }
    }

    fn dequeue(&mut self, now: Time, env: &mut Environment<P>) -> Option<P> {
        while let Some(packet) = self.queue.pop_front() {
            self.packets -= 1;
            self.bytes -= u64::from(packet.bytes());
            self.ce_bytes -= ce_bytes(&packet);
            if let Some(packet) = self.release(packet, now, env) {
                return Some(packet);
            }
            if env.has_dropped_burst() {
                return None; // the next of the burst comes before the next in the queue
            }
        }
        self.aqm.on_empty(now);
        None
    }

    fn pass(&mut self, packet: P, now: Time, env: &mut Environment<P>) -> Option<P> {
        let packet = self.admit(packet, now, env)?;
        let released = self.release(packet, now, env);
        if released.is_none() {
            self.aqm.on_empty(now);
        }
        released
    }

    fn takes_bursts(&self) -> bool {
        true
    }

    fn enqueue_burst(
        &mut self,
        burst: P,
        now: Time,
        env: &mut Environment<P>,
    ) -> Option<(P, u32, DropReason)> {
        if self.aqm.passes_arrivals() {
            return self.enqueue_as_fits(burst, now);
        }
        for admitted in 0..1 + burst.followers() {
            if let Some(reason) = self.admit_next(&burst, now, env) {
                return Some((burst, admitted, reason));
            }
        }
        self.queue.push_back(burst);
        None
    }

    fn queue_burst(&mut self, burst: P) {
        self.queue.push_back(burst);
    }

    fn release_next(
        &mut self,
        packet: &P,
        now: Time,
        env: &mut Environment<P>,
    ) -> Option<DropReason> {
        self.packets -= 1;
        self.bytes -= u64::from(packet.bytes());
        let verdict = self.aqm.on_dequeue(packet, self.backlog(), now, env);
        if let Verdict::Drop(reason) = verdict.for_packet(packet) {
            return Some(reason);
        }
        if self.packets == 0 {
            self.aqm.on_drained(now);
        }
        None
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn may_hold(&self) -> bool {
        false
    }

    fn next_timer(&self) -> Option<Time> {
        self.aqm.next_timer()
    }

    fn keeps_timer(&self) -> bool {
        self.aqm.keeps_timer()
    }

    fn on_timer(&mut self, now: Time, _env: &mut Environment<P>) {
        self.aqm.on_timer(self.backlog(), now);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.aqm.state(visit);
    }

    fn change(&mut self, settings: &Settings) -> Result<(), SettingError> {
        let limit = settings.limit_or(self.limit);
        self.aqm.change(settings, limit)?;
        self.limit = limit;
        Ok(())
    }

    fn aqm(&mut self) -> Option<&mut dyn Aqm<P>> {
        Some(&mut self.aqm)
    }
}
