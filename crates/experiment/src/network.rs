//! The links and routes of an experiment as parts of a network of `sojourn-path`, for every backend that carries packets
//! itself.

use std::fmt;

use sojourn_aqm::cake::framing::Framing;
use sojourn_aqm::{Catalogue, Discipline, Limit, Packet, SettingError, Settings};
use sojourn_path::link::BoxedQdisc;
use sojourn_path::{Impair, LinkConfig, Stage, htb};
use sojourn_traffic::streams::{self, Stream};
use sojourn_units::{Duration, Time};

use crate::derived::{self, Egress};
use crate::model::{self, Capacity, Experiment, Hop, Link, Queue, Route, Traffic, Way};

/// A queue was set up at most so long before the start.
const OLDEST: Duration = Duration::from_secs(3600);

/// Why a run cannot be built or changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RunError {
    /// A queue's parameters contradict each other.
    Settings {
        /// The dotted key at fault.
        key: String,
        /// What is wrong and what is accepted, in the words of [`SettingError`].
        message: String,
    },
    /// The catalogue has no discipline of this name.
    UnknownDiscipline(String),
    /// No congestion control has this name.
    UnknownCongestionControl(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings { key, message } => write!(f, "{key}: {message}"),
            Self::UnknownDiscipline(name) => write!(f, "no discipline is called \"{name}\""),
            Self::UnknownCongestionControl(name) => {
                write!(f, "no congestion control is called \"{name}\"")
            }
        }
    }
}

impl std::error::Error for RunError {}

/// The wired queues of arm number `queue`, in the order in which links are added to a network.
///
/// # Errors
/// A discipline is unknown, or refuses its settings.
pub fn links<P: Packet + Send + 'static>(
    experiment: &Experiment,
    queue: usize,
    seed: u64,
    catalogue: &Catalogue<P>,
) -> Result<Vec<(BoxedQdisc<P>, LinkConfig)>, RunError> {
    let egresses = derived::queues(experiment, queue);
    let link = |egress: &Egress<'_>| {
        let discipline = discipline(egress.arm, catalogue)?;
        let build = |egress: &Egress<'_>| {
            let mut settings = settings(experiment, egress);
            settings.age = age(egress, seed);
            let built = discipline.build(&settings);
            built.map_err(at(egress, queue))
        };
        let classes = derived::classes(experiment, egress);
        let qdisc = if classes.is_empty() {
            build(egress)?
        } else {
            let leaves = derived::leaf_classes(classes);
            let of_class = |leaf: &usize| {
                // The rate that its limit and its parameters follow from is the ceil of its class.
                let ceil = Capacity::constant(classes[*leaf].share(egress.hop.way).ceil);
                build(&Egress {
                    capacity: &ceil,
                    ..*egress
                })
            };
            let disciplines: Result<_, RunError> = leaves.iter().map(of_class).collect();
            let of = |class: &model::Class| {
                let share = class.share(egress.hop.way);
                htb::Class {
                    parent: class.parent,
                    rate: share.rate,
                    ceil: share.ceil,
                }
            };
            let tree: Vec<htb::Class> = classes.iter().map(of).collect();
            let hosts = derived::class_of_hosts(experiment);
            htb::boxed(&tree, egress.link.burst, disciplines?, &hosts)
        };
        Ok((qdisc, config(experiment, egress, seed)))
    };
    let egresses = egresses.iter().filter(|egress| egress.link.wifi.is_none());
    egresses.map(link).collect()
}

/// Maps an error in a discipline's key to the key of the experiment.
pub fn at(egress: &Egress<'_>, queue: usize) -> impl Fn(SettingError) -> RunError {
    move |error| RunError::Settings {
        key: egress.key_of(queue, &error.key),
        message: error.message,
    }
}

/// The name of a queue's stream of random numbers.
fn stream_of(egress: &Egress<'_>) -> String {
    let way = egress.hop.way.name();
    match egress.link.nodes {
        None => format!("queue/{way}"),
        Some(_) => format!("queue/{}/{way}", egress.link.name),
    }
}

/// How long before the start a queue was set up: no timer of a router is in step with a sender.
fn age(egress: &Egress<'_>, seed: u64) -> Duration {
    let mut draws = Stream::new(seed, &format!("{}/set-up", stream_of(egress)));
    Duration::from_nanos(draws.below(OLDEST.as_nanos()))
}

fn config(experiment: &Experiment, egress: &Egress<'_>, seed: u64) -> LinkConfig {
    let stream = stream_of(egress);
    let mut config = LinkConfig::new(egress.capacity.clone());
    config.burst = egress.link.burst;
    config.overhead = egress.link.overhead;
    config.framing = Framing {
        cells: egress.link.cells,
        mpu: egress.link.mpu,
        ..Framing::NONE
    };
    config.device_queue = egress.link.device_queue;
    config.steady = (experiment.warmup, experiment.duration);
    config.seed = streams::seed(seed, &stream);
    config.request_grant = match (egress.hop.way, &egress.link.up) {
        (Way::Up, Some(up)) => up.request_grant,
        _ => None,
    };
    if let Some(interval) = config.request_grant {
        // No modem's clock is in step with that of a sender.
        let mut draws = Stream::new(seed, &format!("{stream}/grants"));
        config.first_grant = Time::from_nanos(draws.below(interval.as_nanos()));
    }
    config
}

/// An arm's discipline.
///
/// # Errors
/// The catalogue does not have it.
pub fn discipline<'a, P: Packet + Send + 'static>(
    arm: &Queue,
    catalogue: &'a Catalogue<P>,
) -> Result<&'a Discipline<P>, RunError> {
    catalogue
        .get(&arm.aqm)
        .ok_or_else(|| RunError::UnknownDiscipline(arm.aqm.clone()))
}

/// What a queue's discipline is built from.
pub fn settings(experiment: &Experiment, egress: &Egress<'_>) -> Settings {
    let limit = derived::limit(experiment, egress);
    let mut settings = Settings::new(
        egress.capacity.nominal(),
        derived::frame(experiment, egress.link),
    );
    settings.limit = limit.map(|limit| match limit {
        derived::Limit::Packets(packets) => Limit::Packets(packets),
        derived::Limit::Bytes(bytes) => Limit::Bytes(bytes),
    });
    settings.values.clone_from(&egress.arm.settings);
    settings
}

/// The impaired directions of links, in the order of their numbers, each with the seed of its draws.
pub fn impairments(experiment: &Experiment, seed: u64) -> Vec<(Hop, Impair, u64)> {
    let mut impaired = Vec::new();
    for (number, link) in experiment.links.iter().enumerate() {
        for way in [Way::Down, Way::Up] {
            let impair = link.impair(way);
            if !impair.is_nothing() {
                let stream = format!("impair/{}/{}", link.name, way.name());
                let hop = Hop { link: number, way };
                impaired.push((hop, impair, streams::seed(seed, &stream)));
            }
        }
    }
    impaired
}

/// The entry of a Wi-Fi cell for packets to or from this station; see [`Stage::Shared`].
pub const fn entry(station: u16, way: Way) -> u16 {
    station * 2 + way as u16
}

/// Translates the hops of a route into stages of the network.
#[derive(Clone, Debug)]
pub struct Topology<'a> {
    /// The links.
    pub links: &'a [Link],
    /// The queues in the order of their numbers.
    pub queues: Vec<Hop>,
    /// The links that are Wi-Fi cells, in the order of the media.
    pub cells: Vec<usize>,
    /// The impaired directions, in the order of the impairments.
    pub impaired: Vec<Hop>,
}

impl Topology<'_> {
    /// The number of a hop's queue, if it has one.
    pub fn queue(&self, hop: Hop) -> Option<usize> {
        self.queues.iter().position(|queue| *queue == hop)
    }

    fn impairment(&self, hop: Hop) -> Option<usize> {
        self.impaired.iter().position(|impaired| *impaired == hop)
    }

    /// The stages of a route in a direction. For each hop: its queue, if it has one, then its impairment, if it has one, and
    /// its propagation delay. On Wi-Fi the queue is that of the hop's station. Hosts send and receive packets with the header
    /// sizes of the file's first link.
    pub fn stages(&self, route: &Route, way: Way) -> Vec<Stage> {
        let at_hosts = self.links[0].overhead;
        let mut stages = Vec::new();
        let mut overhead = at_hosts;
        let mut change = |stages: &mut Vec<Stage>, to: u32| {
            if to != overhead {
                stages.push(Stage::ChangeBytes(to as i32 - overhead as i32));
                overhead = to;
            }
        };
        for (hop, station) in route.hops(way).iter().zip(route.stations(way)) {
            let link = &self.links[hop.link];
            if let Some(queue) = self.queue(*hop) {
                change(&mut stages, link.overhead);
                let cell = self.cells.iter().position(|cell| *cell == hop.link);
                stages.push(match cell {
                    Some(cell) => Stage::Shared(cell as u16, entry(station, hop.way)),
                    None => Stage::Link(queue),
                });
            }
            if let Some(impairment) = self.impairment(*hop) {
                stages.push(Stage::Impaired(impairment));
            }
            stages.push(Stage::Delay(link.delay));
        }
        change(&mut stages, at_hosts);
        stages
    }

    /// The path back from the receiver in a direction; it includes the rest of the base RTT.
    pub fn stages_back(&self, traffic: &Traffic, way: Way) -> Vec<Stage> {
        let one_way = traffic.route.delay(self.links);
        let only_waits = |hop: &Hop| self.queue(*hop).is_none() && self.impairment(*hop).is_none();
        if traffic.route.hops(way).iter().all(only_waits) {
            return vec![Stage::Delay(traffic.rtt.saturating_sub(one_way))];
        }
        let mut stages = self.stages(&traffic.route, way);
        stages.insert(0, Stage::Delay(traffic.rtt.saturating_sub(one_way * 2)));
        stages
    }
}
