//! The hosts of an experiment's paths. Traffic of one host shares a namespace and an address, as far as Linux can keep
//! its settings apart: those of a namespace and of a route hold for all traffic of a host.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use sojourn_experiment::derived::{self, Host};
use sojourn_experiment::model::{Direction, Experiment, Kind, Recovery, Tcp, Traffic};
use sojourn_units::Duration;

use crate::ports::{Port, ports};
use crate::shaper::MOST_BANDS;

/// A traffic group in one direction: a pair of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// The traffic group.
    pub group: usize,
    /// `Down` or `Up`.
    pub direction: Direction,
    /// The hosts at the beginning and at the end of the group's route, as indices into [`Hosts::all`].
    pub ends: [usize; 2],
}

impl Path {
    /// The sending and the receiving host.
    pub const fn sender_and_receiver(&self) -> [usize; 2] {
        let [near, far] = self.ends;
        match self.direction {
            Direction::Up => [far, near],
            Direction::Down | Direction::Both => [near, far],
        }
    }
}

/// A host, with what all of its traffic requires.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacedHost {
    /// Its side and number, which its address and its names have.
    pub host: Host,
    /// The node that it is attached to.
    pub node: String,
    /// The requirements.
    pub role: Role,
}

/// What a host's traffic requires of it.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Role {
    /// The TCP options that a namespace has.
    pub options: Option<Options>,
    /// What connections that it sends on start from: the initial window, and the minimum timeout.
    pub sends: Option<(u32, Duration)>,
    /// The largest window that it advertises.
    pub receives: Option<Option<u64>>,
    /// The propagation delay of the links to it, of data; none of acknowledgements.
    pub delay: Option<Duration>,
    /// What its echo replies wait.
    pub echoes: Option<Duration>,
    /// What its other packets wait; zero for data.
    pub rests: Vec<Duration>,
    /// The routes to it: by node, the next neighbour.
    pub routes: BTreeMap<String, Ipv4Addr>,
}

/// TCP options that hold for a whole namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Request and accept ECN.
    pub ecn: bool,
    /// Request and accept AccECN, which Prague needs.
    pub accecn: bool,
    /// A retransmitted SYN does not request ECN.
    pub ecn_fallback: bool,
    /// Selective acknowledgements.
    pub sack: bool,
    /// RACK-TLP, and F-RTO.
    pub rack: bool,
}

impl Options {
    fn of(tcp: &Tcp) -> Self {
        Self {
            ecn: tcp.ecn,
            accecn: tcp.accecn || tcp.congestion_control == "prague",
            ecn_fallback: tcp.ecn_fallback,
            sack: tcp.sack,
            rack: tcp.recovery == Recovery::Rack,
        }
    }
}

/// The one of two requirements that is given; `None` if they differ.
fn both<T: PartialEq + Clone>(one: &Option<T>, other: &Option<T>) -> Option<Option<T>> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => None,
        (one, other) => Some(one.clone().or_else(|| other.clone())),
    }
}

impl Role {
    /// What a path requires of the host that receives its data, or sends it.
    fn of(experiment: &Experiment, traffic: &Traffic, receives: bool) -> Self {
        let tcp = traffic.kind.tcp();
        let delay = traffic.route.delay(&experiment.links);
        let rest = traffic.rtt.saturating_sub(delay);
        let has_echoes = matches!(traffic.kind, Kind::Ping(_));
        let role = Self {
            options: tcp.map(Options::of),
            ..Self::default()
        };
        match receives {
            true => Self {
                receives: tcp.map(|tcp| tcp.window),
                delay: Some(delay),
                echoes: has_echoes.then_some(rest),
                rests: vec![rest],
                ..role
            },
            false => Self {
                sends: tcp.map(|tcp| (tcp.initial_window, tcp.min_rto)),
                // What comes back has been delayed by the receiver.
                delay: Some(Duration::ZERO),
                rests: vec![Duration::ZERO],
                ..role
            },
        }
    }

    /// Both requirements, if one host can meet them.
    fn with(&self, other: &Self) -> Option<Self> {
        let mut routes = self.routes.clone();
        for (node, next) in &other.routes {
            if routes
                .insert(node.clone(), *next)
                .is_some_and(|known| known != *next)
            {
                return None;
            }
        }
        let mut rests = self.rests.clone();
        rests.extend(other.rests.iter().filter(|rest| !self.rests.contains(rest)));
        if rests.len() > MOST_BANDS {
            return None;
        }
        Some(Self {
            options: both(&self.options, &other.options)?,
            sends: both(&self.sends, &other.sends)?,
            receives: both(&self.receives, &other.receives)?,
            delay: both(&self.delay, &other.delay)?,
            echoes: both(&self.echoes, &other.echoes)?,
            rests,
            routes,
        })
    }

    /// Where packets that wait for `rest` stand among the host's delays; `None` if all wait alike.
    pub fn band(&self, rest: Duration) -> Option<usize> {
        let at = self.rests.iter().position(|known| *known == rest);
        at.filter(|_| self.rests.len() > 1)
    }
}

/// All paths of an experiment, and their hosts.
pub struct Hosts {
    /// The paths: group by group, down before up.
    pub paths: Vec<Path>,
    /// The hosts, in the order of the first path of each.
    pub all: Vec<PlacedHost>,
    /// The first group that has a host of its own although others have the same host: their settings differ.
    pub apart: Option<usize>,
}

impl Hosts {
    /// The hosts of an experiment.
    pub fn of(experiment: &Experiment) -> Self {
        let (mut paths, mut all) = (Vec::new(), Vec::<(Host, PlacedHost)>::new());
        let mut apart = None;
        let hosts = derived::hosts(experiment);
        for (group, traffic) in experiment.traffic.iter().enumerate() {
            for direction in derived::directions(traffic.direction) {
                let number = paths.len();
                let ports = ports(&experiment.links, traffic);
                let mut end = |is_far: bool| {
                    let same = hosts[group][usize::from(is_far)];
                    let mut role = Role::of(
                        experiment,
                        traffic,
                        is_far == (*direction == Direction::Down),
                    );
                    if experiment.links[0].nodes.is_some() {
                        role.routes = routes(&ports, is_far);
                    }
                    let mut known = all.iter_mut().enumerate();
                    let mut is_shared = false;
                    let joined = known.find_map(|(at, (known, placed))| {
                        is_shared |= *known == same;
                        let role = placed.role.with(&role).filter(|_| *known == same)?;
                        placed.role = role;
                        Some(at)
                    });
                    joined.unwrap_or_else(|| {
                        if is_shared {
                            apart = apart.or(Some(group));
                        }
                        let node = match is_far {
                            true => ports.last().map(|(_, back)| back.node.clone()),
                            false => ports.first().map(|(there, _)| there.node.clone()),
                        };
                        let placed = PlacedHost {
                            host: Host { is_far, number },
                            node: node.unwrap_or_default(),
                            role,
                        };
                        all.push((same, placed));
                        all.len() - 1
                    })
                };
                let ends = [end(false), end(true)];
                paths.push(Path {
                    group,
                    direction: *direction,
                    ends,
                });
            }
        }
        let all = all.into_iter().map(|(_, placed)| placed).collect();
        Self { paths, all, apart }
    }

    /// The path of a group in a direction.
    pub fn path(&self, group: usize, direction: Direction) -> Option<&Path> {
        let mut paths = self.paths.iter();
        paths.find(|path| (path.group, path.direction) == (group, direction))
    }
}

/// The routes to a path's far or near host at every node on the path.
fn routes(ports: &[(Port, Port)], is_far: bool) -> BTreeMap<String, Ipv4Addr> {
    let route = |(there, back): &(Port, Port)| match is_far {
        true => (there.node.clone(), back.address),
        false => (back.node.clone(), there.address),
    };
    ports.iter().map(route).collect()
}
