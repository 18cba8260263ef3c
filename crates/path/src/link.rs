//! A link in one direction: a discipline, and a shaper that lets packets go at the link's rate.
//!
//! The [`Shaper`] decides when a packet may go; with a burst of zero it is a serial line. A packet's sojourn ends when it
//! leaves the discipline; the time on the wire is part of the base RTT.
//!
//! A serial line that has become free asks its discipline for a packet even if none is queued, as a network device does.
//! A shaper does not, as Linux's HTB does not ask an inactive class. Linux's RED notes that it is idle when it is asked
//! and has no packet; so it notes this on a serial line, but not below a shaper.

mod bursts;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::fmt;

use sojourn_aqm::cake::framing::Framing;
use sojourn_aqm::{Environment, Packet, Qdisc, SettingError, Settings};
use sojourn_units::{Capacity, Duration, Rate, Time, cold_path};

use crate::grants::Grants;
use crate::observer::Observer;
use crate::shaper::Shaper;

/// A discipline that a link can own, on any thread.
pub type BoxedQdisc<P> = Box<dyn Qdisc<P> + Send>;

/// The parameters of a link.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LinkConfig {
    /// Its capacity over time.
    pub capacity: Capacity,
    /// Bytes it may send ahead of its rate after an idle time.
    pub burst: u64,
    /// Bytes that a packet takes beyond its IP length.
    pub overhead: u32,
    /// Its cells and least size of a packet.
    pub framing: Framing,
    /// Packets in the unmanaged FIFO below the discipline.
    pub device_queue: u64,
    /// The beginning and end of the span that [`Link::utilization`] covers.
    pub steady: (Duration, Duration),
    /// Seed of the discipline's random stream.
    pub seed: u64,
    /// The time of a MAP, if what is sent has to be requested and granted, as upstream of a cable modem.
    pub request_grant: Option<Duration>,
    /// When the first MAP begins.
    pub first_grant: Time,
}

impl LinkConfig {
    /// A link of this rate as Linux's HTB shapes it: a burst of 1600 bytes, Ethernet's 14 bytes beside an IP packet, and no
    /// device queue.
    pub fn of_rate(rate: Rate) -> Self {
        Self::new(Capacity::constant(rate))
    }

    /// As [`LinkConfig::of_rate`], with a capacity that changes.
    pub fn new(capacity: Capacity) -> Self {
        Self {
            capacity,
            burst: 1600,
            overhead: 14,
            framing: Framing::NONE,
            device_queue: 0,
            steady: (Duration::ZERO, Duration::MAX),
            seed: 0,
            request_grant: None,
            first_grant: Time::ZERO,
        }
    }
}

/// One direction of a link.
pub struct Link<P> {
    qdisc: BoxedQdisc<P>,
    environment: Environment<P>,
    shaper: Shaper,
    /// See [`Shaper::is_line`].
    is_line: bool,
    /// Its discipline, which holds nothing back, and its bucket alone decide when packets leave: the usual case, for which
    /// [`Link::serve`] is compiled apart.
    is_plain: bool,
    /// It is plain, and its discipline takes bursts.
    takes_bursts: bool,
    /// The rest of the burst whose first packets have left the discipline. It still counts as queued there.
    burst: Option<P>,
    /// A packet that finds the link idle may go straight through the discipline: it is no line and has no device queue.
    may_pass: bool,
    device: VecDeque<P>,
    device_limit: usize,
    /// Packets in the discipline and in the device queue.
    queued: u64,
    /// Packets that left as they came, until [`Link::serve`] returns them at the same instant.
    departed: VecDeque<P>,
    /// A packet that needs further opportunities of a trace, and when it has them.
    transit: Option<(Time, P)>,
    is_trace: bool,
    wake: Time,
    /// The discipline has a timer.
    has_timer: bool,
    /// It is asked for its timer after everything that happens.
    asks_timer: bool,
    /// When the timer is due, as the discipline last reported it.
    timer: Time,
    /// The discipline is classful, and holds all its packets back although the link is free: it is asked again at each
    /// arrival.
    is_held: bool,
    is_classful: bool,
    /// Of a link whose packets are requested and granted.
    grants: Option<Grants>,
}

impl<P> fmt::Debug for Link<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("queued", &self.queued)
            .field("wake", &self.wake)
            .finish_non_exhaustive()
    }
}

impl<P: Packet> Link<P> {
    /// An idle link.
    pub fn new(qdisc: BoxedQdisc<P>, config: LinkConfig) -> Self {
        let shaper = Shaper::new(
            &config.capacity,
            config.burst,
            config.overhead,
            config.framing,
            config.steady,
        );
        let is_plain = !shaper.is_trace()
            && config.device_queue == 0
            && config.request_grant.is_none()
            && !qdisc.may_hold();
        Self {
            is_plain,
            takes_bursts: is_plain && qdisc.takes_bursts(),
            burst: None,
            has_timer: qdisc.next_timer().is_some(),
            asks_timer: qdisc.next_timer().is_some() && !qdisc.keeps_timer(),
            timer: qdisc.next_timer().unwrap_or(Time::MAX),
            is_classful: qdisc.is_classful(),
            is_held: false,
            qdisc,
            environment: Environment::new(config.seed),
            is_line: shaper.is_line(),
            may_pass: !shaper.is_line()
                && config.device_queue == 0
                && config.request_grant.is_none(),
            grants: (config.request_grant).map(|every| Grants::new(every, config.first_grant)),
            is_trace: shaper.is_trace(),
            transit: None,
            shaper,
            device: VecDeque::new(),
            device_limit: config.device_queue as usize,
            queued: 0,
            departed: VecDeque::new(),
            wake: Time::MAX,
        }
    }

    /// When [`Link::serve`] is to be called; [`Time::MAX`]: not before another packet arrives.
    pub const fn wake(&self) -> Time {
        self.wake
    }

    /// When [`Link::serve`] or [`Link::on_timer`] is due. To be called after everything that may change it.
    #[inline(always)]
    pub fn find_due(&mut self) -> Time {
        if self.asks_timer {
            self.find_timer();
        }
        self.wake.min(self.timer)
    }

    /// True if it does not only wait for a packet: then [`Link::find_due`] finds when it acts.
    #[inline(always)]
    pub const fn may_act(&self) -> bool {
        self.has_timer || !matches!(self.wake, Time::MAX)
    }

    /// Lets the discipline act.
    pub fn on_timer(&mut self, now: Time, number: usize, observer: &mut impl Observer<P>) {
        self.qdisc.on_timer(now, &mut self.environment);
        self.find_timer();
        self.note_drops(now, number, observer);
    }

    fn find_timer(&mut self) {
        self.timer = self.qdisc.next_timer().unwrap_or(Time::MAX);
    }

    /// Gives the discipline other parameters; see [`Qdisc::change`].
    ///
    /// # Errors
    /// As there.
    pub fn change(&mut self, settings: &Settings) -> Result<(), SettingError> {
        self.qdisc.change(settings)?;
        self.find_timer();
        self.has_timer = self.qdisc.next_timer().is_some();
        self.asks_timer = self.has_timer && !self.qdisc.keeps_timer();
        Ok(())
    }

    /// Sets the rate from now on, in place of the schedule's. A packet in transmission keeps its old rate. Returns false
    /// for a link with a trace, which has no rate.
    pub fn set_rate(&mut self, rate: Rate, now: Time) -> bool {
        self.shaper.set_rate(rate, now)
    }

    /// The discipline, for its backlog and state.
    pub fn qdisc(&self) -> &dyn Qdisc<P> {
        &*self.qdisc
    }

    /// The share of the capacity that was used in the steady state, 0 to 1.
    pub fn utilization(&self) -> f64 {
        self.shaper.utilization()
    }

    /// Marks made so far.
    pub const fn marked(&self) -> u64 {
        self.environment.marked()
    }

    /// Packets in the discipline, in the device queue and about to leave.
    pub fn packets(&self) -> u64 {
        self.queued + self.departed.len() as u64 + u64::from(self.transit.is_some())
    }

    /// True if an arrival makes the link send, as on Linux each transmission enqueues and then runs the discipline: the
    /// link waits for a packet, or packets of this instant have left it already. Otherwise it acts later, by its own timer.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        matches!(self.wake, Time::MAX) || !self.departed.is_empty() || self.is_held
    }

    /// True if a packet that arrives at `at` goes straight through the discipline, provided that nothing else comes before, and
    /// if time alone changes nothing here.
    pub(crate) fn lets_pass(&mut self, at: Time) -> bool {
        self.may_pass
            && !self.may_act()
            && !self.is_trace
            && self.queued == 0
            && self.departed.is_empty()
            && self.shaper.is_free(at)
    }

    /// A packet arrives at a link that is not idle. `number` is the link's number for the observer, here and below.
    #[inline(always)]
    pub fn enqueue(
        &mut self,
        packet: P,
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) {
        self.offer(packet, now, number, observer);
        if self.device_limit > 0 {
            cold_path();
            self.fill_device(now, number, observer);
        }
    }

    /// Offers a packet to the discipline.
    #[inline(always)]
    fn offer(&mut self, packet: P, now: Time, number: usize, observer: &mut impl Observer<P>) {
        observer.on_arrival(number, &packet, now);
        self.queued += 1;
        self.qdisc.enqueue(packet, now, &mut self.environment);
        self.note_drops(now, number, observer);
    }

    /// A packet arrives at an idle link. Returns the packet that leaves at once, if one does. The caller sends it on, or
    /// gives it back with [`Link::hold`].
    #[inline(always)]
    pub fn enqueue_idle(
        &mut self,
        packet: P,
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        if !self.may_pass || self.queued > 0 || !self.shaper.is_free(now) {
            return self.offer_and_advance(packet, now, number, observer);
        }
        observer.on_arrival(number, &packet, now);
        let Some(mut packet) = self.qdisc.pass(packet, now, &mut self.environment) else {
            self.note_not_passed(now, number, observer);
            return None;
        };
        debug_assert!(!self.environment.has_dropped(), "one came, one leaves");
        observer.on_pass(number, &mut packet, now);
        self.shaper.charge(packet.bytes(), now);
        self.let_go(packet, now)
    }

    /// A packet that was charged; kept as long as it needs further opportunities of a trace.
    #[inline(always)]
    fn let_go(&mut self, packet: P, now: Time) -> Option<P> {
        if self.is_trace {
            cold_path();
            let at = self.shaper.left_at(now);
            if at > now {
                self.wake = if self.departed.is_empty() { at } else { now };
                self.transit = Some((at, packet));
                return None;
            }
        }
        Some(packet)
    }

    /// The discipline has dropped or kept the packet that was to pass.
    #[cold]
    fn note_not_passed(&mut self, now: Time, number: usize, observer: &mut impl Observer<P>) {
        self.queued += 1;
        self.note_drops(now, number, observer);
        if self.queued > 0 && self.departed.is_empty() {
            self.wake = self.next_wake::<false>(now);
        }
    }

    #[cold]
    fn offer_and_advance(
        &mut self,
        packet: P,
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        self.has_grant(now);
        self.enqueue(packet, now, number, observer);
        let left = self.advance::<false>(now, number, observer);
        if !self.departed.is_empty() {
            self.wake = now;
        }
        left
    }

    /// Keeps a packet that [`Link::enqueue_idle`] returned, until [`Link::serve`] is called at the same instant.
    #[cold]
    pub fn hold(&mut self, packet: P, now: Time) {
        self.departed.push_back(packet);
        self.wake = now;
    }

    /// True if it has a device queue.
    pub const fn has_device_queue(&self) -> bool {
        self.device_limit > 0
    }

    /// The next packet that leaves at `now`. To be called until `None` once [`Link::wake`] is reached.
    #[inline(always)]
    pub fn serve(
        &mut self,
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        if self.is_plain {
            return self.serve_as::<true>(now, number, observer);
        }
        self.serve_otherwise(now, number, observer)
    }

    #[cold]
    #[inline(never)]
    fn serve_otherwise(
        &mut self,
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        self.serve_as::<false>(now, number, observer)
    }

    #[inline(always)]
    fn serve_as<const PLAIN: bool>(
        &mut self,
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        while self.wake <= now {
            if let Some(packet) = self.departed.pop_front() {
                cold_path();
                if self.departed.is_empty() {
                    self.wake = self.next_wake::<PLAIN>(now);
                }
                return Some(packet);
            }
            if !PLAIN {
                if let Some((_, packet)) = self.transit.take_if(|(at, _)| *at <= now) {
                    self.wake = self.next_wake::<PLAIN>(now);
                    return Some(packet);
                }
            }
            if let Some(packet) = self.advance::<PLAIN>(now, number, observer) {
                return Some(packet);
            } // else it has set another wake-up
        }
        None
    }

    /// Lets one packet go if the shaper allows, and sets the next wake-up.
    #[inline(always)]
    fn advance<const PLAIN: bool>(
        &mut self,
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        let may_send = if PLAIN {
            self.shaper.bucket().is_free(now)
        } else {
            self.shaper.is_free(now) && self.has_grant(now)
        };
        if !may_send {
            cold_path();
            self.wake = self.next_wake::<PLAIN>(now);
            return None;
        }
        let burst = if PLAIN { self.burst.take() } else { None };
        let packet = if burst.is_none() && !self.is_line && self.queued == 0 {
            None
        } else if PLAIN {
            self.dequeue_after(burst, now, number, observer)
        } else {
            self.take(now, number, observer)
        };
        self.send::<PLAIN>(packet, now)
    }

    /// True if what waits is granted, or needs no grant.
    #[inline(always)]
    fn has_grant(&mut self, now: Time) -> bool {
        let Some(grants) = &mut self.grants else {
            return true;
        };
        cold_path();
        let device: u64 = self
            .device
            .iter()
            .map(|packet| u64::from(packet.bytes()))
            .sum();
        let room = self.shaper.rate().bytes_in(grants.interval());
        grants.may_send(now, self.qdisc.bytes() + device, room)
    }

    /// Charges the shaper for a packet that leaves, if there is one, and sets the next wake-up.
    #[inline(always)]
    fn send<const PLAIN: bool>(&mut self, packet: Option<P>, now: Time) -> Option<P> {
        let Some(packet) = packet else {
            cold_path();
            self.wake = if self.queued > 0 {
                self.next_wake::<PLAIN>(now)
            } else {
                Time::MAX
            };
            return None;
        };
        self.queued -= 1;
        if PLAIN {
            let free = self.shaper.bucket().charge_next(packet.bytes(), now);
            let is_asked = self.is_line || self.queued > 0;
            self.wake = if is_asked { free } else { Time::MAX };
            return Some(packet);
        }
        self.shaper.charge(packet.bytes(), now);
        if let Some(grants) = &mut self.grants {
            grants.charge(packet.bytes());
        }
        let packet = self.let_go(packet, now)?;
        self.wake = self.next_wake::<PLAIN>(now);
        Some(packet)
    }

    /// When [`Link::serve`] has something to do next.
    #[inline(always)]
    fn next_wake<const PLAIN: bool>(&mut self, now: Time) -> Time {
        if let Some((at, _)) = self.transit.as_ref().filter(|_| !PLAIN) {
            return *at;
        }
        if !self.is_line && self.queued == 0 {
            return Time::MAX;
        }
        if PLAIN {
            return self.shaper.free_at(now);
        }
        let mut free = self.shaper.free_at(now);
        if let Some(grants) = self.grants.as_ref().filter(|grants| grants.are_used()) {
            if self.queued == 0 {
                return Time::MAX;
            }
            free = free.max(grants.next());
        }
        match self.qdisc.ready_at() {
            Some(ready) if self.device.is_empty() => {
                self.is_held = self.is_classful && ready > free;
                free.max(ready)
            }
            _ => {
                self.is_held = false;
                free
            }
        }
    }

    /// The packet that goes onto the wire next.
    #[inline(always)]
    fn take(&mut self, now: Time, number: usize, observer: &mut impl Observer<P>) -> Option<P> {
        if self.device_limit == 0 {
            return self.dequeue(now, number, observer);
        }
        cold_path();
        self.fill_device(now, number, observer);
        let packet = self.device.pop_front();
        self.fill_device(now, number, observer);
        packet
    }

    #[cold]
    fn fill_device(&mut self, now: Time, number: usize, observer: &mut impl Observer<P>) {
        while self.device.len() < self.device_limit {
            let Some(packet) = self.dequeue(now, number, observer) else {
                break;
            };
            self.device.push_back(packet);
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, now: Time, number: usize, observer: &mut impl Observer<P>) -> Option<P> {
        let burst = self.burst.take();
        self.dequeue_after(burst, now, number, observer)
    }

    /// The same with the burst whose first packets have left, if there is one.
    #[inline(always)]
    fn dequeue_after(
        &mut self,
        burst: Option<P>,
        now: Time,
        number: usize,
        observer: &mut impl Observer<P>,
    ) -> Option<P> {
        let mut packet = match burst {
            Some(burst) => self.next_of_burst(burst, observer, now),
            None => self.qdisc.dequeue(now, &mut self.environment),
        };
        if packet.is_none() && self.environment.has_dropped() {
            packet = self.after_dropped(observer, now);
        }
        self.note_drops(now, number, observer);
        if let Some(packet) = &mut packet {
            observer.on_dequeue(number, packet, now);
        }
        packet
    }

    fn note_drops(&mut self, now: Time, number: usize, observer: &mut impl Observer<P>) {
        if self.environment.has_dropped() {
            self.take_drops(now, number, observer);
        }
    }

    #[cold]
    fn take_drops(&mut self, now: Time, number: usize, observer: &mut impl Observer<P>) {
        let backlog = self.shaper.rate().tx_time(self.qdisc.bytes());
        for (packet, reason) in self.environment.take_dropped() {
            self.queued -= 1;
            let sojourn = now - packet.enqueued();
            let queued = if sojourn.is_zero() { backlog } else { sojourn };
            observer.on_drop(number, packet, reason, queued, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;
    use sojourn_aqm::fifo::DropTail;
    use sojourn_aqm::{Datagram, Limit, Single};

    use super::*;
    use crate::observer::NoObserver;

    /// 1 ms at 10 Mbit/s.
    const BYTES: u32 = 1250;

    fn link(burst: u64, device_queue: u64, rate: Vec<(Duration, Rate)>) -> Link<Datagram<u32>> {
        let qdisc = Box::new(Single::new(DropTail, Limit::Packets(100)));
        let config = LinkConfig {
            capacity: Capacity::Steps(rate),
            burst,
            device_queue,
            ..LinkConfig::of_rate(Rate::from_mbps(10))
        };
        Link::new(qdisc, config)
    }

    /// The instants, in ms, at which ten packets that arrive together at 100 ms leave.
    fn departures(mut link: Link<Datagram<u32>>) -> Vec<u64> {
        for n in 0..10 {
            let packet = Datagram::new(n, BYTES);
            let now = Time::from_millis(100);
            if !link.is_idle() {
                link.enqueue(packet, now, 0, &mut NoObserver);
            } else if let Some(packet) = link.enqueue_idle(packet, now, 0, &mut NoObserver) {
                link.hold(packet, now);
            }
        }
        let mut left = Vec::new();
        while link.wake() < Time::MAX {
            let now = link.wake();
            while let Some(packet) = link.serve(now, 0, &mut NoObserver) {
                assert_eq!(packet.payload as usize, left.len(), "first in, first out");
                left.push(now.as_nanos() / 1_000_000);
            }
        }
        left
    }

    fn ten_megabit() -> Vec<(Duration, Rate)> {
        vec![(Duration::ZERO, Rate::from_mbps(10))]
    }

    #[test]
    fn a_serial_line_sends_a_packet_per_transmission_time() {
        assert_eq!(
            departures(link(0, 0, ten_megabit())),
            (100..110).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_burst_of_one_packet_lets_two_go_at_once() {
        let expected = [100, 100, 101, 102, 103, 104, 105, 106, 107, 108];
        assert_eq!(departures(link(1250, 0, ten_megabit())), expected);
    }

    /// As Linux's `dev_queue_xmit`, which runs the discipline after each packet: nothing waits while there are tokens, so that
    /// nothing is dropped for lack of room.
    #[test]
    fn packets_that_arrive_together_leave_while_there_are_tokens() {
        for device_queue in [0, 3] {
            let (qdisc, seen) = (Single::new(DropTail, Limit::Packets(1)), &mut Drops(0));
            let config = LinkConfig {
                burst: 9 * u64::from(BYTES),
                device_queue,
                ..LinkConfig::of_rate(Rate::from_mbps(10))
            };
            let mut link = Link::new(Box::new(qdisc), config);
            let now = Time::from_millis(100);
            // Ten leave, one is queued, as many are in the device queue, and there is no room for the last.
            for n in 0..12 + device_queue as u32 {
                assert!(link.is_idle());
                if let Some(packet) = link.enqueue_idle(Datagram::new(n, BYTES), now, 0, seen) {
                    link.hold(packet, now);
                }
            }
            let left = core::iter::from_fn(|| link.serve(now, 0, seen));
            assert_eq!(
                left.map(|packet| packet.payload).collect::<Vec<_>>(),
                (0..10).collect::<Vec<_>>()
            );
            assert_eq!((seen.0, link.wake()), (1, Time::from_millis(101)));
        }
    }

    struct Drops(u64);

    impl Observer<Datagram<u32>> for Drops {
        fn on_drop(
            &mut self,
            _: usize,
            _: Datagram<u32>,
            _: sojourn_aqm::DropReason,
            _: Duration,
            _: Time,
        ) {
            self.0 += 1;
        }
    }

    proptest! {
        /// Packets leave a plain link as they do with everything that it lacks asked for.
        #[test]
        fn a_plain_link_is_one_without_the_rest(
            arrivals in proptest::collection::vec((0_u64..3_000, 40_u32..1500), 1..100),
            burst in prop::sample::select(vec![0, 1600, 9000]),
            limit in 1_u64..40,
        ) {
            let left = [true, false].map(|is_plain| {
                let qdisc = Single::new(DropTail, Limit::Packets(limit));
                let config = LinkConfig {
                    burst,
                    capacity: Capacity::Steps(vec![
                        (Duration::ZERO, Rate::from_mbps(10)),
                        (Duration::from_millis(20), Rate::from_mbps(3)),
                    ]),
                    ..LinkConfig::of_rate(Rate::from_mbps(10))
                };
                let mut link = Link::new(Box::new(qdisc), config);
                assert!(link.is_plain);
                link.is_plain = is_plain;
                let (mut now, mut left) = (Time::ZERO, Vec::new());
                let seen = &mut Drops(0);
                for (n, (gap, bytes)) in arrivals.iter().enumerate() {
                    now += Duration::from_micros(*gap);
                    while link.wake() < now {
                        let at = link.wake();
                        left.extend(link.serve(at, 0, seen).map(|packet| (packet.payload, at)));
                    }
                    let packet = Datagram::new(n as u32, *bytes);
                    if !link.is_idle() {
                        link.enqueue(packet, now, 0, seen);
                    } else if let Some(packet) = link.enqueue_idle(packet, now, 0, seen) {
                        link.hold(packet, now);
                    }
                }
                (left, seen.0, link.wake(), link.packets())
            });
            prop_assert_eq!(&left[0], &left[1]);
        }
    }

    #[test]
    fn a_device_queue_does_not_change_when_packets_leave_the_link() {
        assert_eq!(
            departures(link(0, 3, ten_megabit())),
            (100..110).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_new_rate_holds_from_its_instant() {
        let rate = vec![
            (Duration::ZERO, Rate::from_mbps(10)),
            (Duration::from_millis(105), Rate::from_mbps(5)),
        ];
        assert_eq!(
            departures(link(0, 0, rate)),
            [100, 101, 102, 103, 104, 105, 107, 109, 111, 113]
        );
    }
}
