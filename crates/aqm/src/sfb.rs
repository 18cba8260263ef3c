//! SFB: stochastic fair BLUE (Feng, Kandlur, Saha and Shin 2001).
//!
//! A Bloom filter of 8 levels with 16 bins each holds, per bin, a queue length and a BLUE probability. An arrival maps
//! to one bin per level and takes the least of their probabilities. An unresponsive flow drives all of its bins to 1,
//! while other flows share at most some of them. A flow at 1 goes through the penalty box, a rate limit. The hash
//! changes every `rehash`, so that no flow shares its bins with an unresponsive one for ever; a second filter is
//! warmed up for `db` beforehand.
//!
//! What the paper leaves open follows Linux's sch_sfb, also the defaults. Above a BLUE probability of one half,
//! ECN-capable packets are dropped too, an increasing share of them up to all at 1. Departures from Linux: the rate
//! limit's token bucket keeps fractions; the probabilities of a retired filter are cleared. `variant = "linux"` has the
//! defaults of tc-sfb(8), which tc sends to the kernel: half the increment, and a decrement of a tenth of that.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;

use sojourn_units::{Duration, Time};

use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::{Packet, mix};
use crate::parameters::Parameters;
use crate::qdisc::Qdisc;
use crate::settings::Settings;
use crate::verdict::DropReason;
use crate::{choice, parameters};

const LEVELS: usize = 8;
const BIN_BITS: u32 = 4;
const BINS: usize = 1 << BIN_BITS;

parameters! {
    /// The parameters of SFB.
    pub struct Config {
        /// packets in a bin at which its probability rises
        pub target: u64,
        /// packets in each of a flow's bins at which its arrivals are dropped
        pub max: u64,
        /// rise of a bin's probability at an arrival
        pub increment: f64 as Probability = "0.001; linux: 0.0005",
        /// fall of a bin's probability at an arrival that finds it empty
        pub decrement: f64 as Probability = "0.001 / 6; linux: 0.00005",
        /// time between changes of the hash; 0: never
        pub rehash: Duration,
        /// how long before a change the next filter is warmed up (double buffering)
        pub db: Duration,
        /// packets per second that unresponsive flows may send together
        pub penalty_rate: f64,
        /// packets that unresponsive flows may send at once
        pub penalty_burst: f64,
        /// which defaults: those of Linux's module, or those of tc
        pub variant: Variant,
    }
    besides {
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool,
    }
}

choice! {
    /// Which defaults to use.
    pub enum Variant {
        /// Those of Linux's module; the paper leaves them open.
        Feng = "feng",
        /// Those of tc.
        Linux = "linux",
    }
}

impl Config {
    /// The defaults of a variant.
    pub fn of(variant: Variant) -> Self {
        let (increment, decrement) = match variant {
            Variant::Feng => (0.001, 0.001 / 6.0),
            Variant::Linux => (0.000_5, 0.000_05),
        };
        Self {
            increment,
            decrement,
            variant,
            ..Self::default()
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            target: 20,
            max: 25,
            increment: 0.001,
            decrement: 0.001 / 6.0,
            rehash: Duration::from_secs(600),
            db: Duration::from_secs(60),
            penalty_rate: 10.0,
            penalty_burst: 20.0,
            variant: Variant::Feng,
            ecn: true,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Bin {
    packets: u64,
    probability: f64,
}

struct Filter {
    /// Drawn before the first packet.
    salt: Option<u64>,
    bins: [[Bin; BINS]; LEVELS],
}

/// The bin of a flow at each level.
type Hashes = [u8; LEVELS];

/// The state of a flow's bins.
struct Standing {
    least_packets: u64,
    probability: f64,
}

impl Filter {
    fn new() -> Box<Self> {
        Box::new(Self {
            salt: None,
            bins: [[Bin::default(); BINS]; LEVELS],
        })
    }

    fn hashes<P: Packet>(&mut self, packet: &P, env: &mut Environment<P>) -> Hashes {
        let salt = *self.salt.get_or_insert_with(|| env.random_u64());
        let mut hash = mix(packet.flow().hash(salt).into(), salt);
        core::array::from_fn(|_| {
            let bin = hash as usize % BINS;
            hash >>= BIN_BITS;
            bin as u8
        })
    }

    fn bins(&mut self, hashes: Hashes) -> impl Iterator<Item = &mut Bin> {
        self.bins
            .iter_mut()
            .zip(hashes)
            .map(|(level, bin)| &mut level[usize::from(bin)])
    }

    /// Updates BLUE in each bin of an arrival.
    fn arrival(&mut self, hashes: Hashes, config: &Config) -> Standing {
        let mut standing = Standing {
            least_packets: u64::MAX,
            probability: 1.0,
        };
        for bin in self.bins(hashes) {
            if bin.packets == 0 {
                bin.probability = (bin.probability - config.decrement).max(0.0);
            } else if bin.packets >= config.target {
                bin.probability = (bin.probability + config.increment).min(1.0);
            }
            standing.least_packets = standing.least_packets.min(bin.packets);
            standing.probability = standing.probability.min(bin.probability);
        }
        standing
    }

    fn entered(&mut self, hashes: Hashes) {
        self.bins(hashes).for_each(|bin| bin.packets += 1);
    }

    fn left(&mut self, hashes: Hashes) {
        self.bins(hashes).for_each(|bin| bin.packets -= 1);
    }
}

/// A queued packet and the bins that count it: in the filter in use when it arrived, and in the next filter if that
/// was warming up.
struct Entry<P> {
    packet: P,
    per_filter: [Option<Hashes>; 2],
}

/// A FIFO governed by SFB.
pub struct Sfb<P> {
    config: Config,
    limit: Limit,
    queue: VecDeque<Entry<P>>,
    bytes: u64,
    filters: [Box<Filter>; 2],
    /// Index of the filter in use.
    slot: usize,
    next_rehash: Time,
    tokens: f64,
    tokens_at: Time,
    last_probability: f64,
}

impl<P: Packet> Sfb<P> {
    /// An empty queue with this limit.
    pub fn new(config: Config, limit: Limit) -> Self {
        Self {
            limit,
            queue: VecDeque::new(),
            bytes: 0,
            filters: [Filter::new(), Filter::new()],
            slot: 0,
            next_rehash: Time::ZERO.saturating_add(config.rehash),
            tokens: config.penalty_burst,
            tokens_at: Time::ZERO,
            last_probability: 0.0,
            config,
        }
    }

    /// Switches to the other filter when it is time, and gives the retired one a new hash.
    fn rehash_if_due(&mut self, now: Time) {
        if self.config.rehash.is_zero() || now <= self.next_rehash {
            return;
        }
        let retired = self.slot;
        self.slot ^= 1;
        self.next_rehash = now.saturating_add(self.config.rehash);
        let filter = &mut self.filters[retired];
        filter.salt = None;
        filter.bins = [[Bin::default(); BINS]; LEVELS];
        // The retired filter no longer counts queued packets.
        for entry in &mut self.queue {
            entry.per_filter[retired] = None;
        }
    }

    fn warming_up(&self, now: Time) -> bool {
        !self.config.rehash.is_zero() && now.saturating_add(self.config.db) > self.next_rehash
    }

    /// True if an unresponsive flow's packet exceeds the penalty box's rate.
    fn penalised(&mut self, now: Time) -> bool {
        let earned = now.saturating_since(self.tokens_at).as_secs_f64() * self.config.penalty_rate;
        self.tokens = (self.tokens + earned).min(self.config.penalty_burst);
        self.tokens_at = now;
        if self.tokens < 1.0 {
            return true;
        }
        self.tokens -= 1.0;
        false
    }

    /// Decides about an arrival with this probability.
    fn judge(
        &mut self,
        packet: &mut P,
        standing: &Standing,
        now: Time,
        env: &mut Environment<P>,
    ) -> Option<DropReason> {
        let p = standing.probability;
        if standing.least_packets >= self.config.max {
            return Some(DropReason::Aqm);
        }
        if p >= 1.0 {
            return self.penalised(now).then_some(DropReason::Aqm);
        }
        let draw = env.uniform();
        if draw >= p {
            return None;
        }
        // Above one half the flow does not respond, or the whole link is congested: drop even ECN-capable packets.
        let drop_all = draw < (p - 0.5) * 2.0;
        if drop_all || !self.config.ecn || !packet.ecn().is_capable() {
            return Some(DropReason::Aqm);
        }
        env.mark(packet);
        None
    }
}

impl<P: Packet> Qdisc<P> for Sfb<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        if !self
            .limit
            .has_room(self.packets(), self.bytes, packet.bytes())
        {
            return env.drop(packet, DropReason::Overflow);
        }
        self.rehash_if_due(now);
        let mut per_filter = [None; 2];
        let hashes = self.filters[self.slot].hashes(&packet, env);
        per_filter[self.slot] = Some(hashes);
        let standing = self.filters[self.slot].arrival(hashes, &self.config);
        if self.warming_up(now) {
            let next = self.slot ^ 1;
            let hashes = self.filters[next].hashes(&packet, env);
            per_filter[next] = Some(hashes);
            self.filters[next].arrival(hashes, &self.config);
        }
        self.last_probability = standing.probability;
        if let Some(reason) = self.judge(&mut packet, &standing, now, env) {
            return env.drop(packet, reason);
        }
        for (filter, hashes) in self.filters.iter_mut().zip(per_filter) {
            if let Some(hashes) = hashes {
                filter.entered(hashes);
            }
        }
        self.bytes += u64::from(packet.bytes());
        self.queue.push_back(Entry { packet, per_filter });
    }

    fn dequeue(&mut self, _now: Time, _env: &mut Environment<P>) -> Option<P> {
        let Entry { packet, per_filter } = self.queue.pop_front()?;
        for (filter, hashes) in self.filters.iter_mut().zip(per_filter) {
            if let Some(hashes) = hashes {
                filter.left(hashes);
            }
        }
        self.bytes -= u64::from(packet.bytes());
        Some(packet)
    }

    fn packets(&self) -> u64 {
        self.queue.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("probability", self.last_probability);
    }
}

fn config(settings: &Settings) -> Result<Config, SettingError> {
    let config = Config::of(settings.variant_or(Variant::Feng)?).given(settings)?;
    let ecn = settings.ecn_or(config.ecn)?;
    if config.target == 0 || config.target > config.max {
        let message = format!(
            "got {}; must be from 1 to max ({})",
            config.target, config.max
        );
        return Err(SettingError::new("target", message));
    }
    for (key, number) in [
        ("penalty_rate", config.penalty_rate),
        ("penalty_burst", config.penalty_burst),
    ] {
        if number < 0.0 {
            let message = format!("got {number}; must be 0 or more");
            return Err(SettingError::new(key, message));
        }
    }
    Ok(Config { ecn, ..config })
}

/// `sfb`.
pub fn sfb<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfb",
        summary: "stochastic fair BLUE: a Bloom filter finds flows that do not respond",
        source: "Feng, Kandlur, Saha and Shin 2001; tc-sfb(8)",
        keys: Box::new(|| Config::default().keys()),
        make: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            Ok(Box::new(Sfb::new(config(settings)?, limit)))
        }),
    }
}

#[cfg(test)]
mod tests;
