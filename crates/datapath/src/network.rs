//! The links and routes of an experiment for real packets.

use sojourn_aqm::{Catalogue, Qdisc};
use sojourn_experiment::cells::{self, Cell};
use sojourn_experiment::derived;
use sojourn_experiment::model::{Experiment, Route as Hops, Traffic, Way};
use sojourn_experiment::network::{self, RunError, Topology};
use sojourn_experiment::{DisciplineKeys, KeySpec, Names};
use sojourn_path::{Builder, Route};

use crate::packet::Packet;
use crate::watch::{Dropped, Watch};

/// The network that it passes.
pub type Network = sojourn_path::Network<Packet, Watch, Cell<Packet>>;

/// The names that a run's document may use: the built-in disciplines, these of another process, and these congestion controls.
pub fn names(foreign: Vec<DisciplineKeys>, congestion_controls: Vec<String>) -> Names {
    let disciplines = Catalogue::<Packet>::new();
    let keys = |discipline: &sojourn_aqm::Discipline<Packet>| DisciplineKeys {
        name: discipline.name.into(),
        keys: (discipline.keys().into_iter())
            .map(|key| KeySpec {
                name: key.name.into(),
                kind: key.kind,
                default: key.default.into_owned(),
                doc: key.doc.into(),
            })
            .collect(),
    };
    Names {
        disciplines: disciplines.iter().map(keys).chain(foreign).collect(),
        congestion_controls,
    }
}

/// A network being built.
pub struct Plan<'e> {
    builder: Builder<Packet>,
    topology: Topology<'e>,
    watch: Watch,
    cells: Vec<Cell<Packet>>,
}

impl<'e> Plan<'e> {
    /// The queues and wires of arm number `queue`.
    ///
    /// # Errors
    /// A discipline is not in the catalogue, or refuses its settings.
    pub fn new(
        experiment: &'e Experiment,
        queue: usize,
        seed: u64,
        catalogue: &Catalogue<Packet>,
    ) -> Result<Self, RunError> {
        let mut builder = Builder::new();
        for (qdisc, config) in network::links(experiment, queue, seed, catalogue)? {
            builder.add_link(qdisc, config);
        }
        let mut watch = Watch::default();
        for (hop, impair, seed) in network::impairments(experiment, seed) {
            builder.add_impairment(impair, seed, Packet::clone);
            watch.impaired.push((hop, 0, 0));
        }
        let built = cells::cells(experiment, queue, seed, catalogue)?;
        let stations = |link: usize| {
            let nodes = experiment.links[link].nodes.as_ref();
            nodes.map_or(Vec::new(), |nodes| nodes.to.clone())
        };
        let named = built.iter().map(|cell| (cell.link, stations(cell.link)));
        watch.cells = named.collect();
        let egresses = derived::queues(experiment, queue);
        watch.dropped = vec![Dropped::default(); egresses.len()];
        let topology = Topology {
            links: &experiment.links,
            queues: egresses.iter().map(|egress| egress.hop).collect(),
            cells: built.iter().map(|cell| cell.link).collect(),
            impaired: watch.impaired.iter().map(|(hop, ..)| *hop).collect(),
        };
        let cells = built.into_iter();
        Ok(Self {
            builder,
            topology,
            watch,
            cells: cells
                .map(|cell| Cell::new(cell.medium, cell.queue, false))
                .collect(),
        })
    }

    /// The routes of a flow's data, and of what returns: together they have the base RTT of its traffic.
    pub fn routes_of(&mut self, traffic: &Traffic, way: Way) -> [Route; 2] {
        let there = self.topology.stages(&traffic.route, way);
        let back = self.topology.stages_back(traffic, way.reversed());
        [there, back].map(|stages| self.builder.add_route(&stages))
    }

    /// The routes down and up over these links, with their propagation delays in both directions.
    pub fn routes_over(&mut self, hops: &Hops) -> [Route; 2] {
        [Way::Down, Way::Up].map(|way| {
            let stages = self.topology.stages(hops, way);
            self.builder.add_route(&stages)
        })
    }

    /// The network.
    pub fn build(self) -> Network {
        self.builder.build_with_media(self.watch, self.cells)
    }
}

/// The state of a queue.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct QueueState {
    /// Its drops so far.
    pub dropped: Dropped,
    /// Its marks so far.
    pub marked: u64,
    /// Packets in it.
    pub backlog_packets: u64,
    /// Its drop probability, if it has one.
    pub probability: Option<f64>,
}

/// The states of all queues of a network.
pub fn states(network: &Network) -> Vec<QueueState> {
    let state = |(number, link): (usize, &sojourn_path::Link<Packet>)| {
        let qdisc: &dyn Qdisc<Packet> = link.qdisc();
        let mut probability = None;
        qdisc.state(&mut |name, value| {
            if name == "probability" {
                probability = Some(value);
            }
        });
        QueueState {
            dropped: network.observer.dropped[number],
            marked: link.marked(),
            backlog_packets: qdisc.packets(),
            probability,
        }
    };
    let mut states: Vec<QueueState> = network.links().iter().enumerate().map(state).collect();
    for cell in network.media() {
        for way in [Way::Down, Way::Up] {
            states.push(QueueState {
                dropped: network.observer.dropped[states.len()],
                marked: cell.marked(way),
                backlog_packets: cell.backlog(way).packets,
                probability: None,
            });
        }
    }
    states
}
