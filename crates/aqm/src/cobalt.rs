//! COBALT: CoDel and BLUE combined (Palmei et al. 2019; Høiland-Jørgensen, Täht and Morton 2018).
//!
//! The CoDel part signals by sojourn time as [`crate::codel`] does, but decrements `count` step by step while the
//! queue is short, instead of restarting. The BLUE part drops at random with a probability that overflow raises and an
//! empty queue lowers. It controls flows that do not respond to signals. It never marks, and never drops the last
//! packet of a queue.
//!
//! Written from the published description and the behaviour of Linux's `sch_cake`, which agree except in one point,
//! [`Variant`]. Departure from both: `interval / sqrt(count)` is exact here, where they take one Newton step per
//! change of `count` from 16 on.

use alloc::boxed::Box;
use alloc::format;

use sojourn_units::{Duration, Time};

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::single::Single;
use crate::verdict::Verdict;
use crate::{choice, parameters};

/// BLUE's step up at an overflow, as a 32-bit fraction: 1/256.
const INCREMENT: u32 = 1 << 24;
/// BLUE's step down when the queue is found empty: 1/4096.
const DECREMENT: u32 = 1 << 20;
/// A queue with less delay than this number of frame times is not standing, whatever the target.
const FEW_FRAMES: u64 = 4;

parameters! {
    /// The parameters of COBALT.
    pub struct Config {
        /// acceptable standing sojourn time, and the minimum time between two steps of BLUE
        pub target: Duration,
        /// how long target must be exceeded before a signal; about the largest common RTT
        pub interval: Duration,
        /// whether the first signal comes after an interval, or at once as in Linux
        pub variant: Variant,
    }
    besides {
        /// Time to send a full frame; a delay of 4 of them is also accepted. Zero if no rate is known.
        pub mtu_time: Duration,
        /// Mark ECN-capable packets that the CoDel part would drop.
        pub ecn: bool,
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            variant: Variant::Published,
            mtu_time: Duration::ZERO,
            ecn: true,
        }
    }
}

choice! {
    /// The rule for the first time above target in a queue's life.
    pub enum Variant {
        /// As at any other time: the first signal is an interval away.
        Published = "published",
        /// Linux's reciprocal of `sqrt(count)` starts at zero, so the first signal is due at once.
        Linux = "linux",
    }
}

/// COBALT's state.
#[derive(Clone, Copy, Debug)]
pub struct Cobalt {
    config: Config,
    count: u32,
    /// True once `count` has changed by a step, after which `interval / sqrt(count)` holds in Linux too.
    stepped: bool,
    dropping: bool,
    /// When the next signal is due. While `count` is 0: until when the queue counts as active.
    drop_next: Time,
    /// BLUE's probability as a 32-bit fraction.
    p_drop: u32,
    /// When BLUE last stepped.
    blue_timer: Time,
}

impl Cobalt {
    /// A COBALT before its first packet.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            count: 0,
            stepped: false,
            dropping: false,
            drop_next: Time::ZERO,
            p_drop: 0,
            blue_timer: Time::ZERO,
        }
    }

    /// True if the state is that of an unused queue again, so nothing is lost if another flow takes the queue.
    pub fn is_unused(&self, now: Time) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    /// `t + interval / sqrt(count)`; a `count` of 0 is treated as 1.
    fn control_law(&self, t: Time) -> Time {
        if self.config.variant == Variant::Linux && !self.stepped {
            return t;
        }
        let interval = self.config.interval;
        if self.count <= 1 {
            return t + interval;
        }
        // 2^32 / sqrt(count): the square root of a 64-bit number costs a quarter of that of interval² / count.
        let reciprocal = (u64::MAX / u64::from(self.count)).isqrt();
        let gap = (u128::from(interval.as_nanos()) * u128::from(reciprocal)) >> 32;
        t + Duration::from_nanos(gap as u64)
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.stepped = true;
        self.drop_next = self.control_law(self.drop_next);
    }

    fn is_signal_due(&self, now: Time) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    fn note_sojourn(&mut self, sojourn: Duration, now: Time) {
        let above = sojourn > self.config.target
            && sojourn > self.config.mtu_time.saturating_mul(FEW_FRAMES);
        if above && !self.dropping {
            self.drop_next = self.control_law(now);
        }
        self.dropping = above;
        if above {
            self.count = self.count.max(1);
        }
    }

    /// The CoDel part: whether a signal is due for the packet that waited for `sojourn`, and whether the schedule lags
    /// behind `now`.
    fn step_codel(&mut self, sojourn: Duration, now: Time) -> (bool, bool) {
        // Test both before this packet moves the schedule, and again only when a signal was due.
        let due = self.is_signal_due(now);
        let late = now > self.drop_next;
        self.note_sojourn(sojourn, now);
        if due && self.dropping {
            self.set_count(self.count.saturating_add(1));
            return (true, now > self.drop_next);
        }
        if due {
            while self.is_signal_due(now) {
                self.set_count(self.count - 1);
            }
            return (false, now > self.drop_next);
        }
        (false, late)
    }

    /// The BLUE part: true if the packet is to be dropped.
    fn is_hit<P: Packet>(&self, env: &mut Environment<P>) -> bool {
        self.p_drop > 0 && ((env.random_u64() >> 32) as u32) < self.p_drop
    }

    fn may_step_blue(&self, now: Time) -> bool {
        now.saturating_since(self.blue_timer) > self.config.target
    }

    fn lower_blue(&mut self, now: Time) {
        if self.p_drop > 0 && self.may_step_blue(now) {
            self.p_drop = self.p_drop.saturating_sub(DECREMENT);
            self.blue_timer = now;
        }
    }
}

impl<P: Packet> Aqm<P> for Cobalt {
    fn passes_arrivals(&self) -> bool {
        true
    }

    fn on_dequeue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        let sojourn = now.saturating_since(packet.enqueued());
        let (signal, late) = self.step_codel(sojourn, now);
        let mark = signal && self.config.ecn && packet.ecn().is_capable();
        let drop = self.is_hit(env) || (signal && !mark);
        if self.count == 0 {
            self.drop_next = now + self.config.interval;
        } else if late && !drop {
            self.drop_next = now;
        }
        if drop && backlog.packets > 0 {
            Verdict::DROP
        } else if mark {
            Verdict::Mark
        } else {
            Verdict::Pass
        }
    }
}

impl Algorithm for Cobalt {
    fn on_overflow(&mut self, _backlog: Backlog, now: Time) {
        if self.may_step_blue(now) {
            self.p_drop = self.p_drop.saturating_add(INCREMENT);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    fn on_empty(&mut self, now: Time) {
        self.lower_blue(now);
        self.dropping = false;
        if self.is_signal_due(now) {
            self.set_count(self.count - 1);
        }
    }

    /// A token bucket never requests a packet from an empty queue; without this, BLUE's probability would never fall.
    fn on_drained(&mut self, now: Time) {
        self.lower_blue(now);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("count", f64::from(self.count));
        visit("dropping", f64::from(u8::from(self.dropping)));
        visit("p_drop", f64::from(self.p_drop) / f64::from(u32::MAX));
    }
}

/// Checks the span given for `key`.
///
/// # Errors
/// It is zero or above 1000 s.
pub(crate) fn require_span(key: &'static str, span: Duration) -> Result<(), SettingError> {
    if span.is_zero() || span > Duration::from_secs(1_000) {
        let message = format!("got \"{span}\"; must be above 0 and at most 1000 s");
        return Err(SettingError::new(key, message));
    }
    Ok(())
}

/// `cobalt`.
pub fn cobalt<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "cobalt",
        summary: "CoDel and BLUE combined: one queue of CAKE",
        source: "Palmei et al. 2019; Høiland-Jørgensen et al. 2018",
        keys: Box::new(|| Config::default().keys()),
        make: Box::new(|settings| {
            let config = Config::default().given(settings)?;
            require_span("target", config.target)?;
            require_span("interval", config.interval)?;
            let ecn = settings.ecn_or(config.ecn)?;
            let limit = settings.limit_or(Limit::Packets(1000));
            let cobalt = Cobalt::new(Config { ecn, ..config });
            Ok(Box::new(Single::new(cobalt, limit)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::Datagram;
    use crate::packet::Ecn;
    use crate::testing::packet;

    const CONFIG: Config = Config {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        mtu_time: Duration::ZERO,
        ecn: true,
        variant: Variant::Published,
    };

    /// A COBALT that decides about a packet per millisecond, each with another behind it.
    struct Asked {
        cobalt: Cobalt,
        env: Environment<Datagram<u64>>,
        millis: u64,
    }

    impl Asked {
        fn new(config: Config) -> Self {
            Self {
                cobalt: Cobalt::new(config),
                env: Environment::new(1),
                millis: 1000,
            }
        }

        fn next(&mut self, sojourn_millis: u64, ecn: Ecn, behind: u64) -> Verdict {
            self.millis += 1;
            let now = Time::from_millis(self.millis);
            let mut packet = packet(1, 0).with_ecn(ecn);
            packet.enqueued = Time::from_millis(self.millis - sojourn_millis);
            let backlog = Backlog {
                packets: behind,
                ..Backlog::default()
            };
            self.cobalt.on_dequeue(&packet, backlog, now, &mut self.env)
        }

        /// The times in milliseconds from now of the packets that did not pass, out of `millis` packets with that
        /// sojourn time.
        fn hits(&mut self, millis: u64, sojourn_millis: u64, ecn: Ecn) -> Vec<u64> {
            let start = self.millis;
            (0..millis)
                .filter_map(|_| {
                    let verdict = self.next(sojourn_millis, ecn, 1);
                    (verdict != Verdict::Pass).then_some(self.millis - start)
                })
                .collect()
        }
    }

    #[test]
    fn gaps_between_signals_are_interval_over_sqrt_count() {
        // One short packet, then 10 ms each: above target at 1, the first signal 100 ms later. Then count is 2: 70.71
        // ms later, at the packet after 171.71; 3: 57.74, 229.45; 4: 50, 279.45.
        let mut asked = Asked::new(CONFIG);
        asked.hits(1, 0, Ecn::NotEct);
        assert_eq!(asked.hits(290, 10, Ecn::NotEct), [101, 172, 230, 280]);
    }

    #[test]
    fn in_linux_the_first_signal_comes_at_once() {
        // A signal is due when the second packet above target leaves; from then on as published, count 2.
        let mut asked = Asked::new(Config {
            variant: Variant::Linux,
            ..CONFIG
        });
        asked.hits(1, 0, Ecn::NotEct);
        assert_eq!(asked.hits(100, 10, Ecn::NotEct), [2, 72]);
    }

    #[test]
    fn ecn_capable_packets_are_marked() {
        let mut asked = Asked::new(CONFIG);
        asked.hits(1, 0, Ecn::Ect0);
        asked.hits(100, 10, Ecn::Ect0);
        assert_eq!(asked.next(10, Ecn::Ect0, 1), Verdict::Mark);
    }

    #[test]
    fn the_last_packet_is_not_dropped() {
        let mut asked = Asked::new(CONFIG);
        asked.hits(1, 0, Ecn::NotEct);
        asked.hits(100, 10, Ecn::NotEct);
        assert_eq!(asked.next(10, Ecn::NotEct, 0), Verdict::Pass);
        assert_eq!(asked.cobalt.count, 2);
    }

    #[test]
    fn a_delay_below_four_frame_times_is_not_a_standing_queue() {
        // 10 ms of delay are above a target of 5 ms, but at 3 ms per frame they are less than four
        // frames.
        let mtu_time = Duration::from_millis(3);
        let mut asked = Asked::new(Config { mtu_time, ..CONFIG });
        asked.hits(1, 0, Ecn::NotEct);
        assert!(asked.hits(400, 10, Ecn::NotEct).is_empty());
        assert!(!asked.hits(400, 13, Ecn::NotEct).is_empty());
    }

    #[test]
    fn count_falls_step_by_step_once_the_queue_is_short() {
        // After four signals count is 5, the next due 44.72 ms after 279.45, at 324.17. Below
        // target from 291 on: count 4 then, 3 at 374.17, 2 at 431.91, 1 at 502.62, 0 at 602.62.
        let mut asked = Asked::new(CONFIG);
        asked.hits(1, 0, Ecn::NotEct);
        asked.hits(290, 10, Ecn::NotEct);
        assert_eq!(asked.cobalt.count, 5);
        for (until, count) in [
            (324, 5),
            (325, 4),
            (374, 4),
            (375, 3),
            (503, 1),
            (602, 1),
            (603, 0),
        ] {
            let more = until + 1001 - asked.millis;
            assert!(asked.hits(more, 0, Ecn::NotEct).is_empty());
            assert_eq!(asked.cobalt.count, count, "at {until} ms");
        }
        assert!(!asked.cobalt.is_unused(Time::from_millis(asked.millis)));
        assert!(
            asked
                .cobalt
                .is_unused(Time::from_millis(asked.millis + 100))
        );
    }

    #[test]
    fn overflow_raises_blue_and_an_empty_queue_lowers_it_once_per_target() {
        let mut cobalt = Cobalt::new(CONFIG);
        let mut now = Time::from_secs(1);
        for (gap_millis, steps) in [(0, 1), (5, 1), (1, 2), (6, 3)] {
            now += Duration::from_millis(gap_millis);
            cobalt.on_overflow(Backlog::default(), now);
            assert_eq!(cobalt.p_drop, steps * (1 << 24));
        }
        now += Duration::from_millis(6);
        cobalt.on_empty(now);
        cobalt.on_empty(now);
        assert_eq!(cobalt.p_drop, 3 * (1 << 24) - (1 << 20));
    }

    #[test]
    fn blue_drops_its_share_and_never_marks() {
        // After 64 overflows the probability is 1/4: about 1000 of 4000 packets are dropped, although they are
        // ECN-capable.
        let mut asked = Asked::new(CONFIG);
        for step in 0..64 {
            let now = Time::from_millis(600 + 6 * step);
            asked.cobalt.on_overflow(Backlog::default(), now);
        }
        let verdicts: Vec<Verdict> = (0..4000).map(|_| asked.next(0, Ecn::Ect0, 1)).collect();
        let drops = verdicts
            .iter()
            .filter(|&&verdict| verdict.is_drop())
            .count();
        assert!((900..1100).contains(&drops), "{drops}");
        assert!(!verdicts.contains(&Verdict::Mark));
    }
}
