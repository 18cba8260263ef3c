//! The event loop: decides which component acts next.

use sojourn_aqm::Packet;
use sojourn_experiment::cells::Cell;
use sojourn_measure::scope::Scope;
use sojourn_path::Hosts;
use sojourn_traffic::Side;
use sojourn_units::{Time, cold_path};

use crate::capture::Stage;
use crate::network::{Network, Watch};
use crate::packet::SimPacket;
use crate::sampler::Sampler;
use crate::timers::Timers;
use crate::traffic::FlowEndpoints;

/// A run under way.
pub struct Simulation {
    /// What to measure.
    pub scope: Scope,
    /// For each Wi-Fi cell: the number of its link, and the names of its stations.
    pub cells: Vec<(usize, Vec<String>)>,
    /// The network.
    pub network: Network,
    /// The hosts.
    pub hosts: Endpoints,
    /// The sampler of the time series.
    pub sampler: Sampler,
    /// Events handled, without those that the network spared.
    pub events: u64,
}

/// From so many flows on, a packet rarely finds its connection in a cache near the processor. Fetched ahead of it, a run with a
/// thousand flows takes 8 % less time, at 1 % more instructions.
const MANY_FLOWS: usize = 256;

/// The hosts at the ends of all routes.
pub struct Endpoints {
    /// The flows.
    pub sources: Vec<FlowEndpoints>,
    timers: Timers,
}

impl Hosts<SimPacket, Watch, Cell<SimPacket>> for Endpoints {
    #[inline(always)]
    fn deliver(&mut self, packet: SimPacket, now: Time, network: &mut Network) {
        debug_assert!(packet.followers() == 0, "a burst is at its link");
        self.hand_over::<false>(&packet, now, network);
        network.observer.packets.give_back(packet);
    }

    #[inline(always)]
    fn expects(&self) -> bool {
        self.sources.len() >= MANY_FLOWS
    }

    fn expect(&self, packet: &SimPacket) {
        if let FlowEndpoints::Tcp(flow) = &self.sources[packet.flow as usize] {
            flow.expect(packet);
        }
    }

    /// Tells stations what has left them.
    fn after_medium(&mut self, now: Time, network: &mut Network) {
        let mut left = core::mem::take(&mut network.observer.left);
        for &(flow, connection) in &left {
            self.sources[flow as usize].on_left(connection);
        }
        // All of a transmission has left before its sender goes on.
        left.dedup();
        for (flow, connection) in left.drain(..) {
            let source = &mut self.sources[flow as usize];
            source.send_throttled(connection, now, network, &mut self.timers);
        }
        // What dropped meanwhile is told later.
        left.append(&mut network.observer.left);
        network.observer.left = left;
    }

    #[inline(always)]
    fn deliver_first(
        &mut self,
        mut packet: SimPacket,
        now: Time,
        network: &mut Network,
    ) -> Option<SimPacket> {
        self.hand_over::<true>(&packet, now, network);
        if packet.followers() > 0 {
            packet.advance();
            return Some(packet);
        }
        network.observer.packets.give_back(packet);
        None
    }
}

impl Endpoints {
    /// Hands a packet to its destination host.
    #[inline(always)]
    fn hand_over<const FROM_LINK: bool>(
        &mut self,
        packet: &SimPacket,
        now: Time,
        network: &mut Network,
    ) {
        if network.observer.capture.is_some() {
            cold_path();
            network.observer.capture(Stage::Arrived, packet, now);
        }
        let source = &mut self.sources[packet.flow as usize];
        source.on_packet::<FROM_LINK>(packet, now, network, &mut self.timers);
    }

    /// Runs the host timer that is due, if it was not postponed.
    #[inline(never)]
    fn run_timer(&mut self, now: Time, network: &mut Network) {
        if let Some(owner) = self.timers.pop() {
            self.wake(owner, now, network);
        }
    }

    fn wake(&mut self, owner: u32, now: Time, network: &mut Network) {
        let side = if owner % 2 == 0 {
            Side::Sending
        } else {
            Side::Receiving
        };
        let source = &mut self.sources[owner as usize / 2];
        if source.next_timers()[side as usize] <= now {
            source.on_timer(side, now, network);
        }
        self.timers.set_both(owner / 2, source.next_timers());
    }
}

impl Simulation {
    /// A run at time zero.
    pub fn new(
        scope: Scope,
        cells: Vec<(usize, Vec<String>)>,
        network: Network,
        sources: Vec<FlowEndpoints>,
    ) -> Self {
        let sampler = Sampler::new(&scope);
        let mut timers = Timers::new(sources.len());
        for (flow, source) in sources.iter().enumerate() {
            timers.set_both(flow as u32, source.next_timers());
        }
        Self {
            scope,
            cells,
            network,
            hosts: Endpoints { sources, timers },
            sampler,
            events: 0,
        }
    }

    /// Runs up to, but excluding, `until`, for some `events` events. Returns the time reached. The series ends at
    /// `end`, the end of the run.
    pub fn advance(&mut self, until: Time, end: Time, events: u64) -> Time {
        let last = self.events.saturating_add(events);
        let mut pause = self.sampler.due().min(until);
        self.look_ahead(pause);
        loop {
            // At equal times a timer comes first, then the sampler.
            let first = self.hosts.timers.next().min(pause);
            let (source, now) = self.network.next_before(first);
            let Some(source) = source else {
                if now == pause {
                    cold_path();
                    if pause == until {
                        break;
                    }
                    if self.hosts.timers.next() > pause {
                        self.sampler
                            .act(pause, &mut self.network, &mut self.hosts.sources);
                        pause = self.sampler.due().min(until);
                        self.look_ahead(pause);
                        self.events += 1;
                        continue;
                    }
                }
                if self.events >= last && self.may_be_looked_at(now) {
                    return now;
                }
                self.hosts.run_timer(now, &mut self.network);
                self.events += 1;
                continue;
            };
            if self.events >= last && self.may_be_looked_at(now) {
                return now;
            }
            self.network.act(source, now, &mut self.hosts);
            self.events += 1;
        }
        if until == end && self.sampler.due() <= end {
            self.sampler
                .act(end, &mut self.network, &mut self.hosts.sources);
        }
        until
    }

    /// Lets packets go ahead of time, unless a capture has them in the order of time.
    fn look_ahead(&mut self, until: Time) {
        let has_capture = self.network.observer.capture.is_some();
        self.network
            .look_ahead(if has_capture { Time::ZERO } else { until });
    }

    /// True if no packet has gone ahead of time beyond the next event, at `now`; else none goes any more.
    #[cold]
    #[inline(never)]
    fn may_be_looked_at(&mut self, now: Time) -> bool {
        let may = now > self.network.looked_ahead();
        if !may {
            self.network.look_ahead(Time::ZERO);
        }
        may
    }
}
