//! CoDel: controlled delay (RFC 8289; Nichols and Jacobson 2012).
//!
//! CoDel acts at dequeue on the sojourn time of the packet at the head. When this has stayed above `target` for an
//! `interval`, one packet is dropped, and then further ones at gaps of `interval / sqrt(count)`, until it falls below.
//!
//! Variants: `rfc8289` computes in nanoseconds. `linux` computes in units of 1024 ns, with a 16-bit reciprocal square
//! root that takes one Newton step whenever `count` changes. `2012` is the algorithm as first published: it re-enters
//! the dropping state with the last `count` less one. There is no other departure from RFC 8289 §5. MAXPACKET (§5.6) is
//! one frame of the link: CoDel drops nothing while the backlog is at most that.
//!
//! With `ce_exclude`, only the time that the link spent on unmarked packets counts: the sojourn time is multiplied by
//! the share of unmarked bytes among those that left during that time. A sojourn time above `interval` is not scaled.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::{Key, SettingError};
use crate::limit::Limit;
use crate::packet::{Ecn, Packet};
use crate::parameters::Parameters;
use crate::settings::Settings;
use crate::single::Single;
use crate::verdict::Verdict;
use crate::{ce_exclude, choice, parameters};

parameters! {
    /// The parameters of CoDel. [`Config::new`] holds the defaults.
    pub struct Config {
        /// acceptable standing sojourn time
        pub target: Duration,
        /// how long target must be exceeded before a drop; about the largest common RTT
        pub interval: Duration,
        /// mark every ECN-capable packet with a longer sojourn time
        pub ce_threshold: Option<Duration>,
        /// the packets that ce_threshold marks: all ECN-capable ones, or those with ECT(1), which tc(8) writes 0x01/0x03
        pub ce_threshold_selector: Selector,
        /// do not count CE-marked packets in the delay or queue length that drives drops
        pub ce_exclude: bool,
        /// RFC 8289, Linux's fixed point, or as first published
        pub variant: Variant,
    }
    besides {
        /// Backlog in bytes at or below which nothing is dropped (RFC 8289 §5.6): a full frame.
        pub mtu: u64,
        /// Mark ECN-capable packets instead of dropping them (§5).
        pub ecn: bool,
    }
}

choice! {
    /// Which packets are marked above `ce_threshold`.
    pub enum Selector {
        /// All that are ECN-capable.
        All = "all",
        /// Those with ECT(1), of L4S (RFC 9331).
        Ect1 = "ect1",
    }
}

choice! {
    /// Which specification or implementation to follow.
    pub enum Variant {
        /// RFC 8289: `interval / sqrt(count)` in whole nanoseconds.
        Rfc8289 = "rfc8289",
        /// As Linux does: units of 1024 ns, a 16-bit reciprocal square root, a Newton step whenever `count` changes.
        Linux = "linux",
        /// Nichols and Jacobson 2012: a dropping state re-entered soon starts at the last count less one. RFC 8289
        /// (§5) and Linux since 3.6 start at `count - lastcount`, by which the last dropping state raised `count`.
        Published2012 = "2012",
    }
}

impl Default for Config {
    /// [`Config::new`] for the frames of Ethernet, 1514 bytes.
    fn default() -> Self {
        Self::new(1514)
    }
}

impl Config {
    /// The defaults of RFC 8289 (§4.2, §4.3) for frames of `mtu` bytes, without ECN.
    pub const fn new(mtu: u32) -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ce_threshold: None,
            ce_threshold_selector: Selector::All,
            ce_exclude: false,
            variant: Variant::Rfc8289,
            mtu: mtu as u64,
            ecn: false,
        }
    }

    /// A span in the ticks of the variant's clock.
    const fn ticks(&self, span: Duration) -> i64 {
        (span.as_nanos() >> self.variant.shift()) as i64
    }
}

/// Bits of a nanosecond count that Linux's clock drops.
const LINUX_SHIFT: u32 = 10;
/// Linux's initial value for the reciprocal square root of 1: just below one.
const LINUX_ONE: u32 = 0xffff;
/// The count restarts if CoDel re-enters the dropping state at least this many intervals after `drop_next` (RFC 8289
/// §5).
const REENTRY_INTERVALS: i64 = 16;

/// CoDel's state, with the names of RFC 8289 §5. Times are in ticks: 1 ns or 1024 ns.
#[derive(Clone)]
pub struct CoDel {
    config: Config,
    target: i64,
    interval: i64,
    first_above_time: Option<i64>,
    drop_next: i64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    /// How to treat the packet behind the one just dropped.
    after_drop: AfterDrop,
    /// 2^16 / sqrt(count), Linux's arithmetic only.
    rec_inv_sqrt: u32,
    /// Only with `ce_exclude`.
    marked_service: Option<Box<MarkedService>>,
}

/// The bytes sent so far, and their number at the arrival of each queued packet.
#[derive(Clone, Default)]
struct MarkedService {
    sent: Sent,
    at_arrival: VecDeque<Sent>,
}

/// Bytes sent.
#[derive(Clone, Copy, Default)]
struct Sent {
    all: u64,
    marked: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AfterDrop {
    Nothing,
    /// The dropping state was just entered: the next packet passes whatever its sojourn time.
    Entered,
    /// A drop in the dropping state: another may be due at once.
    Continued,
}

impl CoDel {
    /// A CoDel before its first packet.
    pub fn new(config: Config) -> Self {
        Self {
            target: config.ticks(config.target),
            interval: config.ticks(config.interval),
            config,
            first_above_time: None,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            after_drop: AfterDrop::Nothing,
            rec_inv_sqrt: 0,
            marked_service: config.ce_exclude.then(Box::default),
        }
    }

    /// Changes the parameters while running, as mac80211 does when a station becomes slow. The variant is kept.
    pub fn reconfigure(&mut self, config: Config) {
        let variant = self.config.variant;
        self.config = Config { variant, ..config };
        self.target = self.config.ticks(config.target);
        self.interval = self.config.ticks(config.interval);
    }

    /// True if the sojourn time has been above target for an interval (`ok_to_drop` in the RFC).
    fn has_stayed_above(&mut self, sojourn: i64, backlog: Backlog, now: i64) -> bool {
        if sojourn < self.target || backlog.qdisc_bytes <= self.config.mtu {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now + self.interval);
                false
            }
            // Linux drops only after the deadline, the RFC's pseudo-code also at it.
            Some(deadline) => {
                now > deadline || (now == deadline && self.config.variant != Variant::Linux)
            }
        }
    }

    /// `t + interval / sqrt(count)`.
    fn control_law(&self, t: i64) -> i64 {
        t + match self.config.variant {
            Variant::Linux => (self.interval * i64::from(self.rec_inv_sqrt << 16)) >> 32,
            Variant::Rfc8289 | Variant::Published2012 => {
                let interval = self.interval as u128;
                (interval * interval / u128::from(self.count.max(1))).isqrt() as i64
            }
        }
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        if self.config.variant == Variant::Linux {
            if count == 1 {
                self.rec_inv_sqrt = LINUX_ONE;
            } else {
                self.newton_step();
            }
        }
    }

    /// x ← x/2 · (3 − count·x²), in 32-bit fractions of which the upper 16 bits are kept.
    fn newton_step(&mut self) {
        let x = u64::from(self.rec_inv_sqrt << 16);
        let square = (x * x) >> 32;
        let bracket = (3_u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.rec_inv_sqrt = ((bracket.wrapping_mul(x) >> 31) >> 16) as u32;
    }

    /// Signals congestion (drop or mark) and sets the state for the next packet.
    fn signal<P: Packet>(&mut self, packet: &P, then: AfterDrop) -> Verdict {
        if self.config.ecn && packet.ecn().is_capable() {
            if then == AfterDrop::Continued {
                self.drop_next = self.control_law(self.drop_next);
            }
            return Verdict::Mark;
        }
        self.after_drop = then;
        Verdict::DROP
    }

    fn enter_dropping<P: Packet>(&mut self, packet: &P, now: i64) -> Verdict {
        self.dropping = true;
        let resumed = match self.config.variant {
            Variant::Rfc8289 | Variant::Linux => self.count.saturating_sub(self.lastcount),
            Variant::Published2012 => self.count.saturating_sub(1),
        };
        let recent = now - self.drop_next < REENTRY_INTERVALS * self.interval;
        self.set_count(if recent { resumed.max(1) } else { 1 });
        self.lastcount = self.count;
        self.drop_next = self.control_law(now);
        self.signal(packet, AfterDrop::Entered)
    }

    #[inline(never)]
    fn decide<P: Packet>(&mut self, packet: &P, above: bool, now: i64) -> Verdict {
        match core::mem::replace(&mut self.after_drop, AfterDrop::Nothing) {
            AfterDrop::Entered => return Verdict::Pass,
            AfterDrop::Continued if above => self.drop_next = self.control_law(self.drop_next),
            AfterDrop::Continued | AfterDrop::Nothing => {}
        }
        if self.dropping && !above {
            self.dropping = false;
        } else if self.dropping && now >= self.drop_next {
            self.set_count(self.count.saturating_add(1));
            return self.signal(packet, AfterDrop::Continued);
        } else if !self.dropping && above {
            return self.enter_dropping(packet, now);
        }
        Verdict::Pass
    }
}

impl Variant {
    const fn shift(self) -> u32 {
        match self {
            Self::Linux => LINUX_SHIFT,
            Self::Rfc8289 | Self::Published2012 => 0,
        }
    }
}

impl MarkedService {
    /// The `sojourn` time without its marked part, for the packet at the head, which leaves the queue.
    fn unmarked(&mut self, sojourn: Duration, full_above: Duration) -> Duration {
        let Some(before) = self.at_arrival.pop_front() else {
            return sojourn;
        };
        let meanwhile = Backlog {
            bytes: self.sent.all - before.all,
            ce_bytes: self.sent.marked - before.marked,
            ..Backlog::default()
        };
        ce_exclude::unmarked_delay(sojourn, meanwhile, full_above)
    }

    fn sends<P: Packet>(&mut self, packet: &P, verdict: Verdict) {
        let bytes = u64::from(packet.bytes());
        if !verdict.is_drop() {
            self.sent.all += bytes;
        }
        if verdict == Verdict::Mark || (verdict == Verdict::Pass && packet.ecn() == Ecn::Ce) {
            self.sent.marked += bytes;
        }
    }
}

impl<P: Packet> Aqm<P> for CoDel {
    fn passes_arrivals(&self) -> bool {
        self.marked_service.is_none()
    }

    fn on_enqueue(
        &mut self,
        _packet: &P,
        _backlog: Backlog,
        _now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        if let Some(service) = &mut self.marked_service {
            service.at_arrival.push_back(service.sent);
        }
        Verdict::Pass
    }

    #[inline(always)]
    fn on_dequeue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        let whole_sojourn = || now.saturating_since(packet.enqueued());
        let shift = self.config.variant.shift();
        let ticks = (now.as_nanos() >> shift) as i64;
        let sojourn = match &mut self.marked_service {
            Some(service) => {
                let unmarked = service.unmarked(whole_sojourn(), self.config.interval);
                (unmarked.as_nanos() >> shift) as i64
            }
            None => ticks - (packet.enqueued().as_nanos() >> shift) as i64,
        };
        let above = self.has_stayed_above(sojourn, backlog, ticks);
        let is_calm = matches!(self.after_drop, AfterDrop::Nothing) && !self.dropping;
        let mut verdict = if is_calm && !above {
            Verdict::Pass // the usual case
        } else {
            self.decide(packet, above, ticks)
        };
        if let Some(threshold) = self.config.ce_threshold {
            let is_meant = match self.config.ce_threshold_selector {
                Selector::All => packet.ecn().is_capable(),
                Selector::Ect1 => packet.ecn() == Ecn::Ect1,
            };
            if whole_sojourn() > threshold && verdict == Verdict::Pass && is_meant {
                verdict = Verdict::Mark;
            }
        }
        if let Some(service) = &mut self.marked_service {
            service.sends(packet, verdict);
        }
        verdict
    }
}

impl Algorithm for CoDel {
    fn change(&mut self, settings: &Settings, _limit: Limit) -> Result<(), SettingError> {
        let new = config(settings, self.config.ecn)?;
        if new.variant != self.config.variant {
            return Err(SettingError::fixed("variant"));
        }
        if new.ce_exclude != self.config.ce_exclude {
            return Err(SettingError::fixed("ce_exclude"));
        }
        self.reconfigure(new);
        Ok(())
    }

    /// Forgets what `ce_exclude` knows of packets that an overflow has dropped from the head. Linux's fq_codel also
    /// makes the queue's CoDel count them; RFC 8290 does not.
    fn on_head_drops(&mut self, packets: u64) {
        if let Some(service) = &mut self.marked_service {
            let gone = service.at_arrival.len().min(packets as usize);
            service.at_arrival.drain(..gone);
        }
        if self.config.variant == Variant::Linux {
            self.count = self.count.saturating_add(packets as u32);
        }
    }

    fn on_empty(&mut self, _now: Time) {
        self.first_above_time = None;
        self.dropping = false;
        self.after_drop = AfterDrop::Nothing;
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("count", f64::from(self.count));
        visit("dropping", f64::from(u8::from(self.dropping)));
    }
}

/// The keys, which fq_codel shares.
pub(crate) fn keys() -> Vec<Key> {
    Config::new(0).keys()
}

/// Reads the keys. `ecn` is the default of that key, which differs between codel and fq_codel.
pub(crate) fn config(settings: &Settings, ecn: bool) -> Result<Config, SettingError> {
    let config = Config::new(settings.mtu).given(settings)?;
    let interval = config.interval;
    if interval.is_zero() || interval > Duration::from_secs(1_000) {
        let message = format!("got \"{interval}\"; must be above 0 and at most 1000 s");
        return Err(SettingError::new("interval", message));
    }
    if config.target.is_zero() {
        let message = format!("got \"{}\"; must be above 0", config.target);
        return Err(SettingError::new("target", message));
    }
    Ok(Config {
        ecn: settings.ecn_or(ecn)?,
        ..config
    })
}

/// `codel`.
pub fn codel<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "codel",
        summary: "controlled delay: drops at the head by sojourn time",
        source: "RFC 8289",
        keys: Box::new(keys),
        make: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            let codel = CoDel::new(config(settings, false)?);
            Ok(Box::new(Single::new(codel, limit)))
        }),
    }
}

#[cfg(test)]
mod tests;
