//! A run on the kernel's Wi-Fi queues: an access point, its stations, and datagrams to them or TCP connections with them.
//!
//! The kernel needs a radio for it, and the one of `validation/wifi_radio` logs what the queues decide. The log is the
//! run's result, with the queues' own counters beside it.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use sojourn_path::Impair;
use sojourn_traffic::{Direction, Kind, OPENS_AHEAD, Tcp as Options};
use sojourn_units::Duration;

use crate::job::{Action, Flow, Interface, Job, Route, Step, Tcp};
use crate::ports::ethernet;
use crate::{netem, topology};

/// What the agent is told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WifiJob {
    /// Of the kernel's random numbers.
    pub seed: u64,
    /// The kernel's number of the radio.
    #[serde(default)]
    pub wiphy: u32,
    /// The radio's name in debugfs, where its log is; `None`: it has no log.
    pub log: Option<String>,
    /// Files below the radio's folder in debugfs that are written before the run, with their content.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// The most packets in all queues; `None`: the kernel's.
    pub limit: Option<u32>,
    /// The most memory of all queues in bytes; `None`: the kernel's.
    pub memory_limit: Option<u32>,
    /// The stations' rates.
    pub stations: Vec<Rate>,
    /// Datagrams to stations, if there are no connections.
    #[serde(default)]
    pub flows: Vec<Datagrams>,
    /// TCP connections between a server behind the access point and stations that answer, which the radio must have.
    #[serde(default)]
    pub connections: Vec<Connection>,
    /// What the wire between the server and the access point delays packets by, each way.
    #[serde(default)]
    pub wire_ns: u64,
    /// Until when the queues are watched.
    pub duration_ns: u64,
}

/// The only rate of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// An index of 802.11n: 0 to 7 with one stream, to 15 with two.
    Mcs(u8),
    /// A legacy rate in units of 500 kbit/s.
    Legacy(u8),
}

/// Datagrams to a station: some at once, again and again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    /// Index of the station.
    pub station: usize,
    /// Their length with the headers of IP and UDP, at least 32 bytes.
    pub bytes: usize,
    /// How many at once.
    #[serde(default = "one")]
    pub burst: u32,
    /// From one time to the next.
    pub every_ns: u64,
    /// The first time.
    #[serde(default)]
    pub start_ns: u64,
    /// When no more are sent.
    pub stop_ns: u64,
    /// Whether they are ECN-capable.
    #[serde(default)]
    pub ecn: bool,
    /// Their DiffServ code point.
    #[serde(default)]
    pub dscp: u8,
}

const fn one() -> u32 {
    1
}

/// A TCP connection that always has data to send.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Index of the station.
    pub station: usize,
    /// Congestion control by the kernel's name.
    pub congestion_control: String,
    /// Whether the station sends.
    #[serde(default)]
    pub up: bool,
    /// When it starts.
    pub start_ns: u64,
}

/// The namespace of the access point, which is the agent's own, and that of the server.
pub const ACCESS_POINT: &str = "sj-ap";
const SERVER: &str = "sj-server";
/// The server's address, and that of the access point on the wire.
const OF_SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const OF_WIRE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const MTU: u32 = 1500;

/// The namespace of a station that answers; stations count from 1.
pub fn namespace_of(number: u8) -> String {
    format!("sj-station{number}")
}

/// The address of a station, which is on the access point's own network.
pub const fn address_of(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, number)
}

impl WifiJob {
    /// The hosts of the connections, without what belongs to the radio: the server with its wire to the access point, whose
    /// namespace must have its name, and a namespace per station.
    pub fn hosts(&self) -> Job {
        let stations = (1..=self.stations.len() as u8).map(namespace_of);
        let namespaces: Vec<String> = [SERVER.into()].into_iter().chain(stations).collect();
        let step = |namespace: Option<&str>, action| Step {
            namespace: namespace.map(str::to_owned),
            action,
        };
        let sysctls = |values: &[(&str, &str)]| {
            let owned = |(key, value): &(&str, &str)| ((*key).into(), (*value).into());
            values.iter().map(owned).collect()
        };
        let mut setup = vec![
            step(None, Action::Sysctl(sysctls(&topology::BUFFERS))),
            step(
                None,
                Action::Sysctl(sysctls(&[("net/ipv4/ip_forward", "1")])),
            ),
        ];
        let unsent = topology::unsent_limit(self.connections.len() as u64);
        for name in &namespaces {
            let own = Some(name.as_str());
            setup.push(step(None, Action::Namespace(name.clone())));
            for values in [
                &topology::NO_IPV6[..],
                &topology::host_settings(None, &unsent),
            ] {
                setup.push(step(own, Action::Sysctl(sysctls(values))));
            }
        }
        let end = |namespace: &str, address: Ipv4Addr| Interface {
            namespace: namespace.into(),
            device: "wire".into(),
            address,
            mac: ethernet(address),
            mtu: MTU,
        };
        let ends = [end(SERVER, OF_SERVER), end(ACCESS_POINT, OF_WIRE)];
        let wire = netem::wire("wire", Duration::from_nanos(self.wire_ns), &Impair::new());
        setup.push(step(None, Action::Connect(ends)));
        setup.push(step(Some(SERVER), Action::Route(Route::new(None, OF_WIRE))));
        setup.push(step(Some(SERVER), Action::Add(wire.clone())));
        setup.push(step(None, Action::Add(wire)));
        Job {
            version: env!("CARGO_PKG_VERSION").into(),
            seed: self.seed,
            modules: Vec::new(),
            namespaces,
            setup,
            bottlenecks: Vec::new(),
            flows: (0..)
                .zip(&self.connections)
                .map(|(number, of)| self.flow(number, of))
                .collect(),
            duration_ns: self.duration_ns,
            warmup_ns: 0,
            bps: 0,
            frame: MTU + topology::ETHERNET,
            series_ns: None,
            capture: false,
            captures_back: false,
        }
    }

    fn flow(&self, number: u32, of: &Connection) -> Flow {
        let station = of.station as u8 + 1;
        let at_station = (namespace_of(station), address_of(station));
        let mut ends = [(SERVER.to_owned(), OF_SERVER), at_station];
        if of.up {
            ends.reverse();
        }
        let [(sender, _), (receiver, address)] = ends;
        Flow {
            number,
            sender,
            receiver,
            address,
            priorities: [0, 0],
            opens_ns: Some(of.start_ns as i64 - (2 * self.wire_ns * OPENS_AHEAD) as i64),
            start_ns: of.start_ns,
            stop_ns: self.duration_ns,
            jitter_ns: 0,
            dscp: 0,
            direction: match of.up {
                true => Direction::Up,
                false => Direction::Down,
            },
            tcp: Some(Tcp {
                congestion_control: of.congestion_control.clone(),
                ecn: false,
                ecn_fallback: true,
                max_segment: None,
            }),
            kind: Kind::Bulk(Options {
                congestion_control: of.congestion_control.clone(),
                ..Options::default()
            }),
        }
    }
}

/// The figures of a run beside the log.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WifiFigures {
    /// The kernel's release.
    pub kernel: String,
    /// Datagrams for which a socket had no room.
    pub refused: u64,
    /// Records for which the log had no room.
    pub lost: u64,
    /// Counters of all queues of the radio (debugfs: aqm).
    pub radio: String,
    /// Counters of each station's queues (debugfs: aqm, airtime).
    pub stations: Vec<(String, String)>,
    /// What each connection did, in their order.
    pub connections: Vec<ConnectionFigures>,
}

/// What a connection did over the whole run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionFigures {
    /// Payload bytes received.
    pub received: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Times in nanoseconds, and the sender's smoothed round-trip time in microseconds.
    pub round_trips: Vec<(u64, u32)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(up: bool) -> Job {
        let connection = Connection {
            station: 1,
            congestion_control: "cubic".into(),
            up,
            start_ns: 100_000_000,
        };
        let job = WifiJob {
            seed: 1,
            wiphy: 0,
            log: None,
            settings: Vec::new(),
            limit: None,
            memory_limit: None,
            stations: vec![Rate::Mcs(7), Rate::Mcs(0)],
            flows: Vec::new(),
            connections: vec![connection],
            wire_ns: 10_000_000,
            duration_ns: 1_000_000_000,
        };
        job.hosts()
    }

    #[test]
    fn every_station_is_a_host_and_the_server_is_another() {
        let hosts = job(false);
        assert_eq!(
            hosts.namespaces,
            ["sj-server", "sj-station1", "sj-station2"]
        );
        let delays = |step: &&Step| matches!(&step.action, Action::Add(of) if of.kind == "netem");
        let delayed: Vec<_> = hosts.setup.iter().filter(delays).collect();
        // The agent's own namespace is the access point's.
        let of = |step: &Step| step.namespace.clone();
        assert_eq!(of(delayed[0]), Some("sj-server".into()));
        assert_eq!(of(delayed[1]), None);
    }

    #[test]
    fn a_connection_opens_two_round_trips_before_its_start() {
        let down = &job(false).flows[0];
        assert_eq!((&*down.sender, down.address), ("sj-server", address_of(2)));
        assert_eq!(down.opens_ns, Some(60_000_000));
        let up = &job(true).flows[0];
        assert_eq!((&*up.receiver, up.address), ("sj-server", OF_SERVER));
    }
}
