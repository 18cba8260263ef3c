//! Queue protection: ejects from the L queue the packets of flows that build it (RFC 9957, of DOCSIS 3.1).
//!
//! Every flow has a score: the bytes that it sent while the L queue was marking, each packet weighted by the marking
//! probability at its arrival, divided by the rate at which scores age. It is kept as the time at which it expires. While
//! the L queue's delay is critical, a packet is ejected whose flow has a score that is high for this delay.

use sojourn_units::{Duration, Rate, Time};

use super::on_ramp;
use crate::environment::Environment;
use crate::packet::{FlowKey, Packet};

/// NBUCKETS: flows that have a score of their own (RFC 9957 §4.1). All others share one more bucket.
const BUCKETS: usize = 32;
/// BI_SIZE: bits of the hash that select a bucket.
const INDEX_BITS: u32 = BUCKETS.ilog2();
/// ATTEMPTS: buckets in which a flow may be.
const ATTEMPTS: u32 = 2;
/// QLSCORE_MAX: the highest score. A flow that has it is ejected whatever the delay.
const HIGHEST_SCORE: Duration = Duration::from_secs(5);
/// CRITICALqLSCORE by default.
pub const CRITICAL_SCORE: Duration = Duration::from_micros(4000);
/// AGING by default: 2^19 bytes per second (LG_AGING = 19).
pub const AGING: Rate = match Rate::from_bps(8 << 19) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// The parameters of queue protection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Parameters {
    /// CRITICALqL: delay of the L queue above which packets may be ejected.
    pub critical_delay: Duration,
    /// CRITICALqLSCORE: the score that is too high at that delay; at twice the delay half of it is.
    pub critical_score: Duration,
    /// Rate at which a flow may cause marks without its score rising.
    pub aging: Rate,
    /// Delay at which the L queue's marking starts, and over what it becomes certain.
    pub ramp: (Duration, Duration),
}

impl Parameters {
    /// With a ramp that starts above the time in which the link sends two full frames of `mtu` bytes (FLOOR, RFC 9957 §4.1).
    /// Without a critical delay it is the end of the ramp.
    pub fn new(
        ramp: (Duration, Duration),
        critical: (Option<Duration>, Duration),
        aging: Rate,
        (link, mtu): (Rate, u32),
    ) -> Self {
        let floor = link.tx_time(2 * u64::from(mtu));
        let (start, range) = ramp;
        let ramp = if start < floor {
            let least = Duration::from_micros(1);
            (floor, range.saturating_sub(floor - start).max(least))
        } else {
            ramp
        };
        Self {
            critical_delay: critical.0.unwrap_or(ramp.0.saturating_add(ramp.1)),
            critical_score: critical.1,
            aging,
            ramp,
        }
    }
}

/// The score of a flow.
#[derive(Clone, Copy, Default)]
struct Bucket {
    flow: FlowKey,
    /// When the score is zero (t_exp).
    expires: Time,
}

/// The scores of the L queue's flows.
pub struct QueueProtection {
    parameters: Parameters,
    /// The last is for flows that find no other.
    buckets: [Bucket; BUCKETS + 1],
    salt: Option<u64>,
    ejected: u64,
}

impl QueueProtection {
    /// No flow has a score yet.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            buckets: [Bucket::default(); BUCKETS + 1],
            salt: None,
            ejected: 0,
        }
    }

    /// qprotect (RFC 9957 §4.2.1): true if a packet that arrives at `now` must not enter the L queue, whose packets wait for
    /// `delay`.
    pub fn ejects<P: Packet>(
        &mut self,
        packet: &P,
        delay: Duration,
        now: Time,
        env: &mut Environment<P>,
    ) -> bool {
        let salt = *self.salt.get_or_insert_with(|| env.random_u64());
        let bucket = self.bucket(packet.flow(), salt, now);
        let score = self.fill(bucket, packet.bytes(), delay, now);
        let Parameters {
            critical_delay,
            critical_score,
            ..
        } = self.parameters;
        let product = |delay: Duration, score: Duration| delay.as_secs_f64() * score.as_secs_f64();
        let critical = delay > critical_delay
            && product(delay, score) > product(critical_delay, critical_score);
        let ejects = critical || score >= HIGHEST_SCORE;
        self.ejected += u64::from(ejects);
        ejects
    }

    /// Packets ejected so far.
    pub const fn ejected(&self) -> u64 {
        self.ejected
    }

    /// pick_bucket (RFC 9957 §4.2.2): the flow's bucket; or else one whose score has expired; or else the last.
    fn bucket(&mut self, flow: FlowKey, salt: u64, now: Time) -> usize {
        let hash = flow.hash(salt) as usize;
        let tried = (0..ATTEMPTS).map(|n| (hash >> (n * INDEX_BITS)) % BUCKETS);
        let own = tried.clone().find(|&at| self.buckets[at].flow == flow);
        let expired = || tried.clone().find(|&at| self.buckets[at].expires <= now);
        let at = own.or_else(expired).unwrap_or(BUCKETS);
        let bucket = &mut self.buckets[at];
        bucket.flow = flow;
        bucket.expires = bucket.expires.max(now);
        at
    }

    /// fill_bucket (RFC 9957 §4.2.3): raises a score by the packet's share of the congestion, and returns it.
    fn fill(&mut self, at: usize, bytes: u32, delay: Duration, now: Time) -> Duration {
        // calcProbNative (RFC 9957 §4.2.4).
        let (start, range) = self.parameters.ramp;
        let congestion = on_ramp(delay, start, range) * 8.0 * f64::from(bytes);
        let aging = self.parameters.aging.as_bps() as f64;
        let bucket = &mut self.buckets[at];
        let raised = bucket.expires + Duration::from_secs_f64(congestion / aging);
        bucket.expires = raised.min(now + HIGHEST_SCORE);
        bucket.expires.saturating_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A ramp from 1 to 2 ms, which is the critical delay; a critical score of 4 ms; aging by 8 Mbit/s: a kilobyte is 1 ms.
    fn protection() -> QueueProtection {
        QueueProtection::new(Parameters {
            critical_delay: MS(2),
            critical_score: MS(4),
            aging: Rate::from_mbps(8),
            ramp: (MS(1), MS(1)),
        })
    }

    struct Queue {
        protection: QueueProtection,
        env: Environment<Datagram<u64>>,
    }

    impl Queue {
        fn new() -> Self {
            Self {
                protection: protection(),
                env: Environment::new(1),
            }
        }

        /// Whether a packet of 1000 bytes of `flow` is ejected at `now` if the queue's delay is `delay`.
        fn ejects(&mut self, flow: u32, delay: Duration, now: Time) -> bool {
            let packet = crate::testing::packet(flow, 0);
            self.protection.ejects(&packet, delay, now, &mut self.env)
        }

        fn score(&self, flow: u32, now: Time) -> Duration {
            let key = FlowKey::numbered(flow);
            let bucket = self.protection.buckets.iter().find(|one| one.flow == key);
            bucket.map_or(Duration::ZERO, |one| one.expires.saturating_since(now))
        }
    }

    /// RFC 9957 §4.2.3: 1000 bytes at 8 Mbit/s are 1 ms; at half of the ramp they count half; below it nothing.
    #[test]
    fn a_packet_adds_its_bytes_times_the_marking_probability() {
        let mut queue = Queue::new();
        for (delay, score_us) in [(2000, 1000), (1500, 1500), (1000, 1500), (900, 1500)] {
            queue.ejects(1, Duration::from_micros(delay), Time::ZERO);
            assert_eq!(queue.score(1, Time::ZERO), Duration::from_micros(score_us));
        }
    }

    /// RFC 9957 §4.2.2: a score ages with time and restarts from zero.
    #[test]
    fn a_score_expires() {
        let mut queue = Queue::new();
        for _ in 0..3 {
            queue.ejects(1, MS(2), Time::ZERO);
        }
        assert_eq!(queue.score(1, Time::from_millis(2)), MS(1));
        queue.ejects(1, MS(2), Time::from_millis(10));
        assert_eq!(queue.score(1, Time::from_millis(10)), MS(1));
    }

    /// RFC 9957 §4.2.1: the product of delay and score counts, and only above the critical delay. At 4 ms a score above
    /// 2 ms is too high: the third packet has 3 ms.
    #[test]
    fn a_flow_is_ejected_when_delay_times_score_is_critical() {
        let mut queue = Queue::new();
        let ejected = [0; 4].map(|_| queue.ejects(1, MS(4), Time::ZERO));
        assert_eq!(ejected, [false, false, true, true]);
        assert_eq!(queue.protection.ejected(), 2);
        assert!(!queue.ejects(2, MS(4), Time::ZERO), "another flow's score");
        assert!(
            !queue.ejects(1, MS(2), Time::ZERO),
            "not above the critical delay"
        );
    }

    /// RFC 9957 §4.1: the score ends at 5 s, and a flow that has it is ejected at any delay.
    #[test]
    fn the_highest_score_is_ejected_whatever_the_delay() {
        let mut queue = Queue::new();
        for _ in 0..6000 {
            queue.ejects(1, MS(2), Time::ZERO);
        }
        assert_eq!(queue.score(1, Time::ZERO), HIGHEST_SCORE);
        assert!(queue.ejects(1, Duration::ZERO, Time::ZERO));
        assert!(!queue.ejects(1, Duration::ZERO, Time::from_millis(1)));
    }

    /// RFC 9957 §4.2.2: a flow with a score keeps its bucket; those that find none share the last.
    #[test]
    fn flows_without_a_bucket_share_one() {
        let mut queue = Queue::new();
        for flow in 0..1000 {
            queue.ejects(flow, MS(2), Time::ZERO);
        }
        let scored = |at: usize| {
            queue.protection.buckets[at]
                .expires
                .saturating_since(Time::ZERO)
        };
        assert!((0..BUCKETS).all(|at| scored(at) == MS(1)));
        assert_eq!(scored(BUCKETS), MS(1000 - BUCKETS as u64));
        // Once scores have expired, new flows take the buckets.
        queue.ejects(2000, MS(2), Time::from_millis(5000));
        assert_eq!(queue.score(2000, Time::from_millis(5000)), MS(1));
    }

    /// RFC 9957 §4.1: two frames of 1500 bytes take 2.4 ms at 10 Mbit/s, more than the start of the ramp.
    #[test]
    fn the_ramp_starts_above_two_frames() {
        let of = |mbps| {
            let aging = Rate::from_mbps(4);
            Parameters::new(
                (MS(1), MS(2)),
                (None, CRITICAL_SCORE),
                aging,
                (Rate::from_mbps(mbps), 1500),
            )
        };
        let slow = of(10);
        assert_eq!(
            slow.ramp,
            (Duration::from_micros(2400), Duration::from_micros(600))
        );
        assert_eq!(slow.critical_delay, MS(3));
        assert_eq!(of(100).ramp, (MS(1), MS(2)));
        assert_eq!(of(1).ramp, (MS(24), Duration::from_micros(1)));
    }

    /// A sum beyond the longest span is the longest span.
    #[test]
    fn the_longest_ramp_ends_with_the_longest_span() {
        let of = |start| {
            let link = (Rate::from_mbps(100), 1500);
            Parameters::new((start, Duration::MAX), (None, CRITICAL_SCORE), AGING, link)
        };
        assert_eq!(of(MS(1)).critical_delay, Duration::MAX);
        assert_eq!(of(Duration::ZERO).critical_delay, Duration::MAX);
    }
}
