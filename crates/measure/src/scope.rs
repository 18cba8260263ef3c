//! The links, queues and flows to measure in a run, as plain data.

use std::sync::Arc;

use sojourn_units::{Duration, Hop, Time, Way};

use crate::emodel::Equipment;
use crate::loss_events::ResponsiveFlows;
use crate::meter::Measures;
use crate::probe::QueueProbe;
use crate::qoo::Requirements;

/// The links, queues and flows to measure in a run.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The names of all links.
    pub links: Vec<String>,
    /// The name of the first link under test.
    pub bottleneck_link: String,
    /// The queues, in the order of their numbers.
    pub queues: Vec<Hop>,
    /// The flows, in the order of their numbers.
    pub flows: Vec<Flow>,
    /// When the steady state begins.
    pub warmup: Duration,
    /// The duration of the run.
    pub duration: Duration,
    /// Whether a row per packet is recorded.
    pub records_packets: bool,
    /// Width of the bins of the series, if there is one.
    pub series: Option<Duration>,
}

/// The data about a flow from which its figures are computed.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Number within its group.
    pub within: u32,
    /// The data that it has in common with the others of its group and direction.
    pub group: Arc<Group>,
}

/// The data about the flows of a group in one direction. There may be hundreds of thousands of them.
#[derive(Clone, Debug)]
pub struct Group {
    /// Number of the traffic group.
    pub traffic: usize,
    /// The name of the group.
    pub name: String,
    /// The total that the group belongs to, if any.
    pub total: Option<String>,
    /// The kind of traffic.
    pub kind: &'static str,
    /// The direction of their data.
    pub way: Way,
    /// The DiffServ code point of their packets.
    pub dscp: u8,
    /// From when to when they send within the steady state: until their stop, or else the end of the run.
    pub active: [Time; 2],
    /// Base RTT.
    pub rtt: Duration,
    /// The one-way propagation delay of the links on their route.
    pub link_delay: Duration,
    /// The numbers of the queues that their data passes, in this order.
    pub queues: Vec<usize>,
    /// The quantities to measure.
    pub measures: Measures,
    /// The codec, for a call.
    pub codec: Option<Equipment>,
    /// What the application needs, if the group has a score.
    pub requirements: Option<Requirements>,
}

impl Scope {
    /// A probe of the queue with this number.
    pub fn probe(&self, queue: usize) -> QueueProbe {
        let responsive = (0..).zip(&self.flows).filter_map(|(number, flow)| {
            let answers = flow.group.measures.over_tcp && flow.group.queues.contains(&queue);
            answers.then_some((number, flow.group.rtt))
        });
        let flows = ResponsiveFlows::new(self.flows.len(), responsive);
        QueueProbe::new(Time::ZERO + self.warmup, self.records_packets, flows)
    }
}
