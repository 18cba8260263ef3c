//! The interfaces of a machine that carry experiments: their state, what a run changes of it, a probe of what they carry.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use serde::Serialize;

use super::link::{Link, OFFLOADS, active_features, attach, detach, index, set_features};
use super::namespace::{self, within};
use super::{Context, Failure};
use crate::job::Attachment;

/// Offloads of an interface that merge received packets, beside [`OFFLOADS`].
const MERGING: [&str; 2] = ["rx-lro", "rx-gro-hw"];
/// What a machine has once and a run changes.
const LIMITS: [&str; 2] = ["/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max"];
/// The port that probes are sent to (RFC 863), and the room for what waits there.
const PORT: u16 = 9;
const BUFFER: usize = 16 << 20;
/// A probe is over this long after its last datagram.
const SILENCE: Duration = Duration::from_millis(100);
/// How long the kernel may take to remove what was in a namespace.
const GONE: Duration = Duration::from_secs(5);
/// Ethernet, IPv4 and UDP headers of a probe.
const HEADERS: u64 = 14 + 20 + 8;

/// The state of an interface.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Wire {
    mac: String,
    up: bool,
    mtu: u32,
    /// As its driver says it; `None` if it does not.
    mbps: Option<u32>,
    offloads: Vec<String>,
    /// Packets that its queue takes, and the most bytes in its ring (byte queue limits), if they are limited.
    queue: u32,
    ring_bytes: Option<u64>,
}

fn read(wire: &str, file: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/sys/class/net/{wire}/{file}")).ok()?;
    Some(text.trim().to_owned())
}

fn read_number<T: std::str::FromStr>(wire: &str, file: &str) -> Option<T> {
    read(wire, file)?.parse().ok()
}

/// IFF_UP and IFF_PROMISC.
const UP: u32 = 1;
const PROMISCUOUS: u32 = 0x100;

fn has(wire: &str, flag: u32) -> bool {
    let flags = read(wire, "flags").unwrap_or_default();
    u32::from_str_radix(flags.trim_start_matches("0x"), 16).is_ok_and(|flags| flags & flag != 0)
}

fn is_up(wire: &str) -> bool {
    has(wire, UP)
}

/// Those offloads of an interface that are on.
fn offloads(wire: &str) -> Result<Vec<String>, Failure> {
    let mut active = active_features(wire)?;
    active.retain(|name| OFFLOADS.iter().chain(&MERGING).any(|known| known == name));
    Ok(active)
}

impl Wire {
    /// The state of an interface; `None` if there is none of this name.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub fn of(name: &str) -> Result<Option<Self>, Failure> {
        let Some(mac) = read(name, "address") else {
            return Ok(None);
        };
        Ok(Some(Self {
            mac,
            up: is_up(name),
            mtu: read_number(name, "mtu").unwrap_or_default(),
            mbps: read_number::<i32>(name, "speed").and_then(|speed| u32::try_from(speed).ok()),
            offloads: offloads(name)?,
            queue: read_number(name, "tx_queue_len").unwrap_or_default(),
            ring_bytes: read_number(name, "queues/tx-0/byte_queue_limits/limit"),
        }))
    }
}

/// What a machine has once, as it was before.
pub struct Settings {
    limits: Vec<(&'static str, String)>,
    wires: Vec<Before>,
}

struct Before {
    wire: String,
    up: bool,
    promiscuous: bool,
    offloads: Vec<String>,
}

impl Settings {
    /// The settings of this machine and of those of its interfaces that there are.
    pub fn take(wires: &[String]) -> Self {
        let limits = LIMITS.into_iter();
        let limits = limits.filter_map(|file| Some((file, fs::read_to_string(file).ok()?)));
        let state = |wire: &String| {
            Some(Before {
                wire: wire.clone(),
                up: is_up(wire),
                promiscuous: has(wire, PROMISCUOUS),
                offloads: offloads(wire).ok()?,
            })
        };
        Self {
            limits: limits.collect(),
            wires: wires.iter().filter_map(state).collect(),
        }
    }

    /// Restores them. What cannot be restored stays: nothing can be done about it.
    pub fn restore(&self) {
        for (file, value) in &self.limits {
            if fs::read_to_string(file).is_ok_and(|now| now != *value) {
                let _ = fs::write(file, value);
            }
        }
        for Before {
            wire,
            up,
            promiscuous,
            offloads,
        } in &self.wires
        {
            // An interface that is put down before the MAC-VLANs above it are gone stays promiscuous, and the kernel removes
            // what was in a namespace only after that has ended.
            let begin = Instant::now();
            while has(wire, PROMISCUOUS) && !promiscuous && begin.elapsed() < GONE {
                std::thread::sleep(Duration::from_millis(10));
            }
            let names: Vec<&str> = offloads.iter().map(String::as_str).collect();
            if !names.is_empty() {
                let _ = set_features(None, wire, &names, true);
            }
            if is_up(wire) != *up {
                let _ = put(wire, *up);
            }
        }
    }
}

fn put(wire: &str, up: bool) -> Result<(), Failure> {
    Link::open(None)?
        .put(index(None, wire)?, up)
        .context(|| format!("putting {wire} up"))
}

/// Makes an interface fit for a run: up, and without offloads.
///
/// # Errors
/// It stays down, or an offload stays on.
pub fn prepare(wire: &str) -> Result<(), Failure> {
    if !is_up(wire) {
        put(wire, true)?;
    }
    let on = offloads(wire)?;
    let names: Vec<&str> = on.iter().map(String::as_str).collect();
    if !names.is_empty() {
        // Whether they are off now is all that counts.
        let _ = set_features(None, wire, &names, false);
    }
    match offloads(wire)?.as_slice() {
        [] => Ok(()),
        fixed => Err(Failure(format!(
            "{wire}: cannot switch off {}; use another interface",
            fixed.join(", ")
        ))),
    }
}

/// Bytes that pass an interface in a time, in both directions.
///
/// # Errors
/// There is no such interface.
pub fn passing(wire: &str, span: Duration) -> Result<u64, Failure> {
    let count = || -> Option<u64> {
        let received: u64 = read_number(wire, "statistics/rx_bytes")?;
        Some(received + read_number::<u64>(wire, "statistics/tx_bytes")?)
    };
    let missing = || Failure(format!("there is no interface {wire}"));
    let before = count().ok_or_else(missing)?;
    std::thread::sleep(span);
    Ok(count().ok_or_else(missing)? - before)
}

/// What a probe has sent, or what arrived of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Probed {
    datagrams: u64,
    /// Bytes of their frames.
    bytes: u64,
    /// From the first to the last.
    span_ns: u64,
}

/// A namespace with one end of a pair, removed when this is dropped.
struct Corner<'a>(&'a Attachment);

impl<'a> Corner<'a> {
    fn open(at: &'a Attachment) -> Result<(Self, UdpSocket), Failure> {
        namespace::create(&at.end.namespace)?;
        let corner = Self(at);
        attach(at)?;
        let socket = within(Some(&at.end.namespace), || {
            Ok(UdpSocket::bind((at.end.address, PORT))?)
        })?;
        Ok((corner, socket))
    }
}

impl Drop for Corner<'_> {
    fn drop(&mut self) {
        // It was created, but perhaps without its device.
        let _ = detach(self.0);
        let _ = namespace::delete(&self.0.end.namespace);
    }
}

/// Counts the datagrams of a probe; `ready` is called when they may come. The first must arrive within `patience`.
///
/// # Errors
/// The kernel refuses.
pub fn listen(
    at: &Attachment,
    patience: Duration,
    ready: impl FnOnce(),
) -> Result<Probed, Failure> {
    let (_corner, socket) = Corner::open(at)?;
    let listening = || "listening for a probe".to_owned();
    setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).context(listening)?;
    socket.set_read_timeout(Some(patience))?;
    ready();
    let (mut probed, mut first) = (Probed::default(), None);
    let mut datagram = [0; 1 << 16];
    loop {
        match socket.recv(&mut datagram) {
            Ok(length) => {
                let now = Instant::now();
                if first.is_none() {
                    socket.set_read_timeout(Some(SILENCE))?;
                }
                probed.datagrams += 1;
                probed.bytes += length as u64 + HEADERS;
                probed.span_ns = (now - *first.get_or_insert(now)).as_nanos() as u64;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(probed);
            }
            Err(error) => return Err(error).context(listening),
        }
    }
}

/// Sends the datagrams of a probe, full packets at `bps`, for a time.
///
/// # Errors
/// The kernel refuses.
pub fn send(at: &Attachment, bps: u64, span: Duration) -> Result<Probed, Failure> {
    let (_corner, socket) = Corner::open(at)?;
    let to = SocketAddr::from((at.other.address, PORT));
    let payload = u64::from(at.end.mtu) + 14 - HEADERS;
    let datagram = vec![0; payload as usize];
    let begin = Instant::now();
    let mut probed = Probed::default();
    while begin.elapsed() < span {
        let due = bps as f64 / 8.0 * begin.elapsed().as_secs_f64();
        while (probed.bytes as f64) <= due {
            socket
                .send_to(&datagram, to)
                .context(|| "sending a probe".into())?;
            probed.datagrams += 1;
            probed.bytes += payload + HEADERS;
            probed.span_ns = begin.elapsed().as_nanos() as u64;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(probed)
}
