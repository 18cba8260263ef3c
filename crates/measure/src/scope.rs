//! What is measured in a run, as plain data: the links, the queues and the flows.

use sojourn_units::{Duration, Hop, Time, Way};

use crate::emodel::Equipment;
use crate::loss_events::ResponsiveFlows;
use crate::meter::Measures;
use crate::probe::QueueProbe;

/// What is measured in a run.
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
    /// How long the run is.
    pub duration: Duration,
    /// Whether a row per packet is kept.
    pub records_packets: bool,
    /// Width of the bins of the series, if there is one.
    pub series: Option<Duration>,
}

/// A flow, as its figures need it.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Number of its traffic group.
    pub traffic: usize,
    /// Number within the group.
    pub within: u32,
    /// The name of its group.
    pub name: String,
    /// The kind of traffic.
    pub kind: &'static str,
    /// Which way its data goes.
    pub way: Way,
    /// The DiffServ code point of its packets.
    pub dscp: u8,
    /// For how long of the steady state it sends.
    pub active: Duration,
    /// Base RTT.
    pub rtt: Duration,
    /// The propagation of the links on its route, one way.
    pub link_delay: Duration,
    /// The numbers of the queues that its data meets, in this order.
    pub queues: Vec<usize>,
    /// What there is to measure of it.
    pub measures: Measures,
    /// The codec, of a call.
    pub codec: Option<Equipment>,
}

impl Scope {
    /// A probe of the queue of this number.
    pub fn probe(&self, queue: usize) -> QueueProbe {
        let responsive = (0..).zip(&self.flows).filter_map(|(number, flow)| {
            let answers = flow.measures.over_tcp && flow.queues.contains(&queue);
            answers.then_some((number, flow.rtt))
        });
        let flows = ResponsiveFlows::new(self.flows.len(), responsive);
        QueueProbe::new(Time::ZERO + self.warmup, self.records_packets, flows)
    }
}
