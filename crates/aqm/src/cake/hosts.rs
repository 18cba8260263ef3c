//! CAKE's isolation modes: by flow, by host, or by flow within hosts (tc-cake(8), "Flow isolation parameters").

use alloc::vec;
use alloc::vec::Vec;

use crate::choice;
use crate::classify::{Classifier, Hashing};
use crate::environment::Environment;
use crate::packet::{FlowKey, Packet};

choice! {
    /// The packets that share a queue, and the hosts that share the rate equally.
    pub enum Isolation {
        /// One queue for all packets.
        FlowBlind = "flowblind",
        /// A queue per sending host.
        SrcHost = "srchost",
        /// A queue per receiving host.
        DstHost = "dsthost",
        /// A queue per pair of hosts.
        Hosts = "hosts",
        /// A queue per flow.
        Flows = "flows",
        /// A queue per flow; sending hosts share equally, then the flows of each host.
        DualSrcHost = "dual-srchost",
        /// As [`Isolation::DualSrcHost`], by receiving host.
        DualDstHost = "dual-dsthost",
        /// A queue per flow; hosts at either end share equally, whichever end has more flows.
        TripleIsolate = "triple-isolate",
    }
}

impl Isolation {
    /// The part of a flow's key that selects its queue.
    pub(super) fn queue_key(self, flow: FlowKey) -> FlowKey {
        let (source, destination) = (source_of(flow), destination_of(flow));
        match self {
            Self::FlowBlind => FlowKey::default(),
            Self::SrcHost => source,
            Self::DstHost => destination,
            Self::Hosts => FlowKey {
                source: flow.source,
                ..destination
            },
            _ => flow,
        }
    }

    const fn is_fair_to_sources(self) -> bool {
        matches!(self, Self::DualSrcHost | Self::TripleIsolate)
    }

    const fn is_fair_to_destinations(self) -> bool {
        matches!(self, Self::DualDstHost | Self::TripleIsolate)
    }
}

fn source_of(flow: FlowKey) -> FlowKey {
    FlowKey {
        source: flow.source,
        ..FlowKey::default()
    }
}

fn destination_of(flow: FlowKey) -> FlowKey {
    FlowKey {
        destination: flow.destination,
        ..FlowKey::default()
    }
}

/// The hosts at either end of a flow, as indices into the tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Ends {
    source: u32,
    destination: u32,
}

/// The number of bulk flows of each host in a tin.
pub(super) struct Hosts {
    isolation: Isolation,
    sources: Table,
    destinations: Table,
}

/// Hosts in a set-associative table; an entry is free while its host has no bulk flow.
struct Table {
    classifier: Classifier,
    bulk_flows: Vec<u32>,
}

impl Table {
    fn new(hosts: u32) -> Self {
        Self {
            classifier: Classifier::new(Hashing::SetAssociative, hosts),
            bulk_flows: vec![0; hosts as usize],
        }
    }

    fn place_of<P: Packet>(&mut self, host: &FlowKey, env: &mut Environment<P>) -> u32 {
        let bulk_flows = &self.bulk_flows;
        let is_free = |at: u32| bulk_flows[at as usize] == 0;
        self.classifier.queue_of_key(host, None, is_free, env)
    }
}

impl Hosts {
    /// Tables for `hosts` hosts on either side, or none if this isolation does not need them.
    pub(super) fn new(isolation: Isolation, hosts: u32) -> Self {
        let room = |wanted: bool| Table::new(if wanted { hosts } else { 0 });
        Self {
            isolation,
            sources: room(isolation.is_fair_to_sources()),
            destinations: room(isolation.is_fair_to_destinations()),
        }
    }

    /// The hosts of a flow.
    pub(super) fn ends_of<P: Packet>(&mut self, flow: FlowKey, env: &mut Environment<P>) -> Ends {
        let mut ends = Ends::default();
        if self.isolation.is_fair_to_sources() {
            ends.source = self.sources.place_of(&source_of(flow), env);
        }
        if self.isolation.is_fair_to_destinations() {
            ends.destination = self.destinations.place_of(&destination_of(flow), env);
        }
        ends
    }

    /// Counts a flow of these hosts that became a bulk flow.
    pub(super) fn join(&mut self, ends: Ends) {
        self.each_count(ends, |count| *count += 1);
    }

    /// Removes a flow of these hosts, no longer a bulk flow, from the counts.
    pub(super) fn leave(&mut self, ends: Ends) {
        self.each_count(ends, |count| *count -= 1);
    }

    fn each_count(&mut self, ends: Ends, change: impl Fn(&mut u32)) {
        if self.isolation.is_fair_to_sources() {
            change(&mut self.sources.bulk_flows[ends.source as usize]);
        }
        if self.isolation.is_fair_to_destinations() {
            change(&mut self.destinations.bulk_flows[ends.destination as usize]);
        }
    }

    /// The number of bulk flows of this flow's host, or of the busier one if both ends count; at least 1.
    pub(super) fn load(&self, ends: Ends) -> u32 {
        let mut load = 1;
        if self.isolation.is_fair_to_sources() {
            load = load.max(self.sources.bulk_flows[ends.source as usize]);
        }
        if self.isolation.is_fair_to_destinations() {
            load = load.max(self.destinations.bulk_flows[ends.destination as usize]);
        }
        load
    }
}
