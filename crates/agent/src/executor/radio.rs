//! A run on the kernel's Wi-Fi queues: see [`crate::wifi`].
//!
//! All senders of datagrams are one thread. A datagram that is sent enters mac80211's queues before the call returns.
//!
//! Connections have a server behind a wire, and a host for each station, whose interface is the radio's: the access point
//! forwards their packets. Their flows are those of [`super::session`].

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::utsname::uname;

use super::link::{Link, index};
use super::namespace::name_own;
use super::nl80211::{Nl80211, address};
use super::setup::Network;
use super::{Context, Failure, session};
use crate::job::{FIRST_PORT, Route};
use crate::wifi::{
    ACCESS_POINT, ConnectionFigures, Datagrams, WifiFigures, WifiJob, address_of, namespace_of,
};

const DEVICE: &str = "ap0";
/// Lengths of the headers of IP and UDP.
const HEADERS: usize = 28;
/// Memory for what a socket has sent and the queues hold, in bytes; the kernel doubles it.
const BUFFER: usize = 256 << 20;
/// ECT(0) (RFC 3168).
const ECN_CAPABLE: i32 = 2;
/// The access point's address.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Bits of the network of the access point and its stations.
const NETWORK_BITS: u8 = 16;
/// Stations whose number fits into an address.
const MOST_STATIONS: usize = 250;

/// Carries out a run. The result: the length of the figures as JSON (eight bytes, little-endian), the figures, the log.
///
/// # Errors
/// The kernel does not support the job.
pub fn execute(job: &WifiJob, progress: &mut dyn FnMut(u64)) -> Result<Vec<u8>, Failure> {
    if job.stations.len() > MOST_STATIONS {
        return Err(Failure(format!("more than {MOST_STATIONS} stations")));
    }
    let debug = mount_debugfs()?;
    let radio = debug.join(format!("ieee80211/phy{}", job.wiphy));
    build(job, &radio)?;
    let (refused, connections) = match job.connections.is_empty() {
        true => (send_all(job, progress)?, Vec::new()),
        false => (0, connect_all(job, progress)?),
    };
    let read =
        |path: PathBuf| fs::read_to_string(&path).context(|| format!("reading {}", path.display()));
    let folder = radio.join(format!("netdev:{DEVICE}/stations"));
    let stations = (1..=job.stations.len() as u8).map(|number| {
        let of = folder.join(written(number));
        Ok((read(of.join("aqm"))?, read(of.join("airtime"))?))
    });
    let mut figures = WifiFigures {
        kernel: uname()
            .context(|| "asking for the kernel's release".into())?
            .release()
            .to_string_lossy()
            .into_owned(),
        refused,
        lost: 0,
        radio: read(radio.join("aqm"))?,
        stations: stations.collect::<Result<_, Failure>>()?,
        connections,
    };
    let mut log = Vec::new();
    if let Some(name) = &job.log {
        let lost = read(debug.join(name).join("lost"))?;
        figures.lost = lost
            .trim()
            .parse()
            .context(|| "reading the log's losses".into())?;
        log = fs::read(debug.join(name).join("log")).context(|| "reading the log".into())?;
    }
    let figures = serde_json::to_vec(&figures).context(|| "writing the figures".into())?;
    Ok([&(figures.len() as u64).to_le_bytes()[..], &figures, &log].concat())
}

fn mount_debugfs() -> Result<PathBuf, Failure> {
    let path = "/sys/kernel/debug";
    let (kind, flags) = (Some("debugfs"), nix::mount::MsFlags::empty());
    nix::mount::mount(kind, path, kind, flags, None::<&str>)
        .context(|| format!("mounting {path}"))?;
    Ok(path.into())
}

fn written(number: u8) -> String {
    address(number).map(|byte| format!("{byte:02x}")).join(":")
}

/// The access point with its stations.
fn build(job: &WifiJob, radio: &Path) -> Result<(), Failure> {
    // Without IPv6 the interface sends nothing of its own.
    fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
        .context(|| "disabling IPv6".into())?;
    for (file, content) in &job.settings {
        let path = radio.join(file);
        fs::write(&path, content).context(|| format!("writing {}", path.display()))?;
    }
    let kernel = Nl80211::open()?;
    if job.limit.is_some() || job.memory_limit.is_some() {
        kernel.limit(job.wiphy, job.limit, job.memory_limit)?;
    }
    kernel.new_interface(job.wiphy, DEVICE)?;
    let link = Link::open(None)?;
    let device = index(None, DEVICE)?;
    let setting = || format!("setting up {DEVICE}");
    link.address(device, GATEWAY, NETWORK_BITS)
        .context(setting)?;
    link.up(device).context(setting)?;
    kernel.start(DEVICE)?;
    // The kernel gives the interface its queue when it is idle; what is sent before is lost.
    sleep(Duration::from_millis(1));
    for (number, rate) in (1..).zip(&job.stations) {
        kernel.new_station(DEVICE, number, *rate)?;
        link.neighbour(device, address_of(number), address(number))
            .context(setting)?;
    }
    Ok(())
}

/// Runs all connections.
fn connect_all(
    job: &WifiJob,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<ConnectionFigures>, Failure> {
    let is_unknown = |station| station >= job.stations.len();
    if !job.flows.is_empty() || job.connections.iter().any(|of| is_unknown(of.station)) {
        let why = "connections need stations, and datagrams beside them are not supported";
        return Err(Failure(why.into()));
    }
    name_own(ACCESS_POINT)?;
    let hosts = job.hosts();
    let _network = Network::build(&hosts)?;
    for number in 1..=job.stations.len() as u8 {
        build_station(number)?;
    }
    let recording = session::run(&hosts, Ok, progress)?;
    let figures = recording.flows.into_iter().map(|of| ConnectionFigures {
        received: of.received,
        retransmits: of.retransmits,
        round_trips: of.round_trips,
    });
    Ok(figures.collect())
}

/// Moves a station's interface to the station's namespace, and sets it up.
fn build_station(number: u8) -> Result<(), Failure> {
    let (device, namespace) = (format!("air{number}"), namespace_of(number));
    let setting = || format!("setting up {device}");
    Link::open(None)?
        .move_to(index(None, &device)?, &namespace)
        .context(setting)?;
    let there = Some(namespace.as_str());
    let (link, index) = (Link::open(there)?, index(there, &device)?);
    link.address(index, address_of(number), NETWORK_BITS)
        .context(setting)?;
    link.up(index).context(setting)?;
    link.neighbour(index, GATEWAY, address(0))
        .context(setting)?;
    link.route(&Route::new(None, GATEWAY)).context(setting)
}

struct Sender<'a> {
    flow: &'a Datagrams,
    socket: UdpSocket,
    payload: Vec<u8>,
    sent: u32,
    next_ns: u64,
}

impl<'a> Sender<'a> {
    fn new(number: usize, flow: &'a Datagrams, stations: usize) -> Result<Self, Failure> {
        let opening = || format!("opening flow {number}");
        if flow.station >= stations || flow.bytes < HEADERS + 4 || flow.every_ns == 0 {
            let why = "no such station, shorter than 32 bytes, or all at once";
            return Err(Failure(format!("flow {number}: {why}")));
        }
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context(opening)?;
        let station = flow.station as u8 + 1;
        let to = SocketAddrV4::new(address_of(station), FIRST_PORT + number as u16);
        socket.connect(to).context(opening)?;
        socket.set_nonblocking(true).context(opening)?;
        setsockopt(&socket, sockopt::SndBufForce, &BUFFER).context(opening)?;
        let service = i32::from(flow.dscp) << 2 | if flow.ecn { ECN_CAPABLE } else { 0 };
        setsockopt(&socket, sockopt::Ipv4Tos, &service).context(opening)?;
        Ok(Self {
            flow,
            socket,
            payload: vec![0; flow.bytes - HEADERS],
            sent: 0,
            next_ns: flow.start_ns,
        })
    }

    /// Sends a burst. Returns how many datagrams found no room.
    fn send(&mut self) -> u64 {
        let mut refused = 0;
        for _ in 0..self.flow.burst {
            self.payload[..4].copy_from_slice(&self.sent.to_be_bytes());
            refused += u64::from(self.socket.send(&self.payload).is_err());
            self.sent += 1;
        }
        self.next_ns += self.flow.every_ns;
        refused
    }
}

/// Sends what is due when it is due. Returns how many datagrams found no room in their sockets.
fn send_all(job: &WifiJob, progress: &mut dyn FnMut(u64)) -> Result<u64, Failure> {
    let senders = job.flows.iter().enumerate();
    let mut senders = senders
        .map(|(number, flow)| Sender::new(number, flow, job.stations.len()))
        .collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let (mut refused, mut seconds) = (0, 0);
    loop {
        let due = senders
            .iter_mut()
            .filter(|sender| sender.next_ns < sender.flow.stop_ns)
            .min_by_key(|sender| sender.next_ns);
        let until = due.as_ref().map_or(job.duration_ns, |sender| {
            sender.next_ns.min(job.duration_ns)
        });
        sleep(Duration::from_nanos(until).saturating_sub(began.elapsed()));
        if until / 1_000_000_000 > seconds {
            seconds = until / 1_000_000_000;
            progress(seconds);
        }
        match due {
            Some(sender) if until < job.duration_ns => refused += sender.send(),
            _ => return Ok(refused),
        }
    }
}
