//! Heavy-hitter filter: flows that have sent much share one FIFO, all others another with more weight (tc-hhf(8)). The
//! filter is Estan and Varghese's multistage filter, with conservative update and shielding (*New Directions in Traffic
//! Measurement and Accounting*, 2003).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use sojourn_units::{Duration, Time};

use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters;
use crate::parameters::Parameters;
use crate::qdisc::Qdisc;
use crate::settings::Settings;
use crate::verdict::DropReason;

/// Stages of the filter; counters per stage, and slots of the table of heavy hitters.
const STAGES: usize = 4;
const WIDTH: usize = 1024;
/// Bits of the hash that select a counter.
const BITS: u32 = WIDTH.ilog2();

parameters! {
    /// The parameters. [`Config::new`] holds the defaults.
    pub struct Config {
        /// bytes that the heavy hitters may send per round
        pub quantum: u64 as Bytes = "one frame",
        /// the most heavy hitters that are remembered
        pub hh_limit: u64,
        /// interval after which the filter forgets what flows have sent
        pub reset_timeout: Duration,
        /// bytes in that interval that make a flow a heavy hitter
        pub admit_bytes: u64 as Bytes,
        /// idle time after which a heavy hitter is none any more
        pub evict_timeout: Duration,
        /// weight of the other flows, relative to the heavy hitters' 1
        pub non_hh_weight: u64,
    }
}

impl Config {
    /// Linux's defaults, for frames of `mtu` bytes.
    pub const fn new(mtu: u32) -> Self {
        Self {
            quantum: mtu as u64,
            hh_limit: 2 * WIDTH as u64,
            reset_timeout: Duration::from_millis(40),
            admit_bytes: 128 << 10,
            evict_timeout: Duration::from_secs(1),
            non_hh_weight: 2,
        }
    }
}

/// A heavy hitter: its hash, and when it last sent.
type Heavy = (u32, Time);

/// Finds heavy hitters.
struct Filter {
    counters: Vec<[u64; STAGES]>,
    reset_at: Time,
    heavy: Vec<Vec<Heavy>>,
    known: u64,
}

impl Filter {
    fn new() -> Self {
        Self {
            counters: vec![[0; STAGES]; WIDTH],
            reset_at: Time::ZERO,
            heavy: (0..WIDTH).map(|_| Vec::with_capacity(2)).collect(),
            known: 0,
        }
    }

    /// True if a packet of the flow with this hash is a heavy hitter's.
    fn takes(&mut self, hash: u32, bytes: u32, now: Time, config: &Config) -> bool {
        if now.saturating_since(self.reset_at) > config.reset_timeout {
            self.counters.fill([0; STAGES]);
            self.reset_at = now;
        }
        let slot = &mut self.heavy[hash as usize % WIDTH];
        let before = slot.len();
        slot.retain(|(_, seen)| now.saturating_since(*seen) <= config.evict_timeout);
        self.known -= (before - slot.len()) as u64;
        if let Some((_, seen)) = slot.iter_mut().find(|(known, _)| *known == hash) {
            *seen = now;
            return true;
        }
        let indices = indices(hash);
        let of = |stage: usize| self.counters[indices[stage]][stage];
        let least = (0..STAGES).map(of).min().unwrap_or(0) + u64::from(bytes);
        if least > config.admit_bytes {
            let is_new = self.known < config.hh_limit;
            if is_new {
                slot.push((hash, now));
                self.known += 1;
            }
            return is_new; // without an update: heavy hitters are kept out of the counters
        }
        for (stage, index) in indices.into_iter().enumerate() {
            let counter = &mut self.counters[index][stage];
            *counter = (*counter).max(least);
        }
        false
    }
}

/// A flow's counter in each stage: three parts of the hash, and their exclusive or with the rest.
fn indices(hash: u32) -> [usize; STAGES] {
    let part = |number: u32| (hash >> (number * BITS)) as usize % WIDTH;
    let [a, b, c] = [part(0), part(1), part(2)];
    [a, b, c, (a ^ b ^ c ^ part(3)) % WIDTH]
}

/// The two FIFOs, by their numbers.
const HEAVY: usize = 0;
const OTHERS: usize = 1;

struct Fifo<P> {
    packets: VecDeque<P>,
    deficit: i64,
    is_active: bool,
}

/// The discipline.
pub struct Hhf<P> {
    config: Config,
    limit: Limit,
    filter: Filter,
    salt: Option<u64>,
    fifos: [Fifo<P>; 2],
    /// The others' FIFO is in the new list, which goes first; and the order in the old list.
    is_new: bool,
    old: VecDeque<usize>,
    bytes: u64,
}

impl<P: Packet> Hhf<P> {
    /// Empty FIFOs.
    pub fn new(config: Config, limit: Limit) -> Self {
        let fifo = || Fifo {
            packets: VecDeque::new(),
            deficit: 0,
            is_active: false,
        };
        Self {
            config,
            limit,
            filter: Filter::new(),
            salt: None,
            fifos: [fifo(), fifo()],
            is_new: false,
            old: VecDeque::with_capacity(2),
            bytes: 0,
        }
    }

    /// Bytes of a FIFO per round.
    const fn credit(&self, at: usize) -> i64 {
        let weight = if at == HEAVY {
            1
        } else {
            self.config.non_hh_weight
        };
        (weight * self.config.quantum) as i64
    }

    fn is_over_limit(&self) -> bool {
        match self.limit {
            Limit::Packets(limit) => self.packets() > limit,
            Limit::Bytes(limit) => self.bytes > limit,
        }
    }

    fn pop(&mut self, at: usize) -> Option<P> {
        let packet = self.fifos[at].packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes());
        Some(packet)
    }
}

impl<P: Packet> Qdisc<P> for Hhf<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        let salt = *self.salt.get_or_insert_with(|| env.random_u64());
        let hash = packet.flow().hash(salt);
        let is_heavy = self.filter.takes(hash, packet.bytes(), now, &self.config);
        let at = if is_heavy { HEAVY } else { OTHERS };
        packet.set_inner_queue(at as u8);
        self.bytes += u64::from(packet.bytes());
        self.fifos[at].packets.push_back(packet);
        if !self.fifos[at].is_active {
            self.fifos[at].is_active = true;
            self.fifos[at].deficit = self.credit(at);
            if at == HEAVY {
                self.old.push_back(HEAVY);
            } else {
                self.is_new = true;
            }
        }
        while self.is_over_limit() {
            // The oldest heavy hitter's packet, if there is one.
            let from = if self.fifos[HEAVY].packets.is_empty() {
                OTHERS
            } else {
                HEAVY
            };
            let Some(dropped) = self.pop(from) else {
                return;
            };
            env.drop(dropped, DropReason::Overflow);
        }
    }

    fn dequeue(&mut self, _now: Time, _env: &mut Environment<P>) -> Option<P> {
        loop {
            let from_new = self.is_new;
            let at = if from_new { OTHERS } else { *self.old.front()? };
            let leaves = self.fifos[at].deficit > 0;
            if leaves {
                if let Some(packet) = self.pop(at) {
                    self.fifos[at].deficit -= i64::from(packet.bytes());
                    return Some(packet);
                }
            } else {
                self.fifos[at].deficit += self.credit(at);
            }
            if from_new {
                self.is_new = false;
            } else {
                self.old.pop_front();
            }
            // An empty FIFO leaves; from the new list it passes the old one once, so that it cannot starve the other.
            if !leaves || (from_new && !self.old.is_empty()) {
                self.old.push_back(at);
            } else {
                self.fifos[at].is_active = false;
            }
        }
    }

    fn packets(&self) -> u64 {
        self.fifos
            .iter()
            .map(|fifo| fifo.packets.len() as u64)
            .sum()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn inner_queues(&self) -> &'static [&'static str] {
        &["heavy", "others"]
    }
}

fn config(settings: &Settings) -> Result<Config, SettingError> {
    let config = Config::new(settings.mtu).given(settings)?;
    for (key, value, least, most) in [
        ("quantum", config.quantum, 256, 1 << 20),
        ("hh_limit", config.hh_limit, 0, 2 * WIDTH as u64),
        ("non_hh_weight", config.non_hh_weight, 1, 2047),
    ] {
        if !(least..=most).contains(&value) {
            let message = format!("got {value}; must be {least} to {most}");
            return Err(SettingError::new(key, message));
        }
    }
    Ok(config)
}

/// `hhf`.
pub fn hhf<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "hhf",
        summary: "heavy-hitter filter: flows that have sent much share one queue, all others another",
        source: "tc-hhf(8); Linux 6.1 sch_hhf",
        keys: Box::new(|| Config::new(0).keys()),
        make: Box::new(|settings| {
            let config = config(settings)?;
            let limit = settings.limit_or(Limit::Packets(1000));
            Ok(Box::new(Hhf::new(config, limit)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;
    use crate::testing::{Driven, packet};

    /// A flow is heavy once it has sent 5000 bytes.
    const CONFIG: Config = Config {
        admit_bytes: 5000,
        ..Config::new(1000)
    };

    fn driven() -> Driven<Hhf<Datagram<u64>>> {
        Driven::new(Hhf::new(CONFIG, Limit::Packets(1000)))
    }

    fn queues(driven: &Driven<Hhf<Datagram<u64>>>) -> [usize; 2] {
        [HEAVY, OTHERS].map(|at| driven.qdisc.fifos[at].packets.len())
    }

    /// tc-hhf(8), admit_bytes: what exceeds them makes a heavy hitter; its later packets are those of one, too.
    #[test]
    fn a_flow_that_has_sent_much_is_a_heavy_hitter() {
        let mut queue = driven();
        for id in 0..8 {
            queue.enqueue(packet(1, id));
        }
        assert_eq!(queues(&queue), [3, 5]);
        queue.enqueue(packet(2, 9));
        assert_eq!(queues(&queue), [3, 6]);
    }

    /// reset_timeout and evict_timeout: what was sent is forgotten after 40 ms, a heavy hitter after a second of silence.
    #[test]
    fn the_filter_forgets() {
        let mut queue = driven();
        for id in 0..8 {
            queue.now = Time::from_millis(41 * id);
            queue.enqueue(packet(1, id));
        }
        assert_eq!(queues(&queue), [0, 8]);
        for id in 0..6 {
            queue.enqueue(packet(1, id));
        }
        let heavy = queues(&queue)[0];
        assert_eq!(heavy, 2);
        queue.now += Duration::from_millis(1000);
        queue.enqueue(packet(1, 20));
        assert_eq!(queues(&queue)[0], 3);
        queue.now += Duration::from_millis(1001);
        queue.enqueue(packet(1, 21));
        assert_eq!(queues(&queue)[0], 3);
    }

    /// non_hh_weight 2: the others send two packets for one of the heavy hitters'.
    #[test]
    fn others_have_twice_the_weight() {
        let mut queue = driven();
        for id in 0..16 {
            queue.enqueue(packet(1, id));
        }
        assert_eq!(queues(&queue), [11, 5]);
        assert_eq!(queue.ids(8), [0, 1, 5, 2, 3, 6, 4, 7]);
    }

    #[test]
    fn overflow_takes_the_oldest_packet_of_a_heavy_hitter() {
        let mut queue = Driven::new(Hhf::new(CONFIG, Limit::Packets(8)));
        for id in 0..8 {
            queue.enqueue(packet(1, id));
        }
        queue.enqueue(packet(2, 9));
        assert_eq!(queue.dropped(), [(5, DropReason::Overflow)]);
    }
}
