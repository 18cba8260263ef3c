//! A discipline at steady state, for the benchmarks of time and of instructions.

use std::hint::black_box;

use sojourn_aqm::{Datagram, Discipline, Environment, FlowKey, Limit, Qdisc, Settings};
use sojourn_units::{Duration, Rate, Time};

/// The number of packets queued, of flows, and the rate of departure.
#[derive(Clone, Copy)]
pub struct Load {
    level: u64,
    per_packet: Duration,
    flows: u64,
}

impl Load {
    /// Every flow is backlogged and the sojourn time is at most 4 ms: no delay-based algorithm acts.
    pub const fn calm(flows: u64) -> Self {
        Self {
            level: level(flows),
            per_packet: Duration::from_nanos(1_000),
            flows,
        }
    }

    /// Sojourn times are above 100 ms: every algorithm acts all the time. Dropped packets are replaced at once.
    pub const fn busy(flows: u64) -> Self {
        Self {
            level: level(flows),
            per_packet: Duration::from_micros(2_400),
            flows,
        }
    }
}

/// Four packets of each flow, at least 50.
const fn level(flows: u64) -> u64 {
    if flows > 25 { 4 * flows } else { 50 }
}

/// The settings of a benchmark: defaults, and room for every load.
pub fn settings() -> Settings {
    let mut settings = Settings::new(Rate::from_mbps(10_000), 1514);
    settings.limit = Some(Limit::Packets(10_000));
    settings
}

/// A discipline under a load.
pub struct Steady {
    qdisc: Box<dyn Qdisc<Datagram<u64>> + Send>,
    env: Environment<Datagram<u64>>,
    load: Load,
    now: Time,
    id: u64,
}

impl Steady {
    /// An empty discipline; its first packets fill it.
    pub fn new(discipline: &Discipline<Datagram<u64>>, load: Load) -> Self {
        Self {
            qdisc: discipline.build(&settings()).expect("defaults are valid"),
            env: Environment::new(1),
            load,
            now: Time::ZERO,
            id: 0,
        }
    }

    /// Fetches `packets` packets, one after the other, and keeps the queue at its level.
    pub fn run(&mut self, packets: u64) {
        for _ in 0..packets {
            self.fill();
            self.now += self.load.per_packet;
            if self.qdisc.next_timer().is_some_and(|due| due <= self.now) {
                self.qdisc.on_timer(self.now, &mut self.env);
            }
            black_box(self.qdisc.dequeue(self.now, &mut self.env));
            if self.env.has_dropped() {
                self.env.take_dropped();
            }
        }
    }

    fn fill(&mut self) {
        // Do not loop for ever on a discipline that drops every arrival.
        for _ in 0..4 {
            if self.qdisc.packets() >= self.load.level {
                break;
            }
            self.id += 1;
            let packet = Datagram::new(self.id, 1514)
                .with_flow(FlowKey::numbered((self.id % self.load.flows) as u32));
            self.qdisc.enqueue(packet, self.now, &mut self.env);
        }
    }
}
