//! The ends of a program's path: their namespaces and devices, or interfaces of the machine.

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use sojourn_datapath::port::Port;
use sojourn_datapath::wire::Wire;

use super::link::Link;
use super::namespace::within;
use super::sandbox::{network_namespace, status_of};
use super::setup::tun;
use super::{Context, Failure};
use crate::job::{Interface, Route};

/// The addresses of the servers' end and of the program's, in the network set aside for providers (RFC 6598).
pub const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 0, 1), Ipv4Addr::new(100, 64, 0, 2)];
/// The variable that names the servers' address to the program.
const SERVER: &str = "SOJOURN_SERVER";
/// The device of each.
pub const DEVICE: &str = "sojourn0";
/// How long servers may take to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a program runs: in a namespace at an end of the path, or in the agent's own.
pub struct End {
    /// The namespace.
    pub file: Option<OwnedFd>,
    /// A name under which the agent finds it.
    pub name: Option<String>,
}

impl End {
    fn new() -> Result<Self, Failure> {
        let file = network_namespace()?;
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(Self {
            file: Some(file),
            name: Some(name),
        })
    }

    /// Makes its device, and lets programs without rights use ports and echoes.
    fn set_up(&self, address: Ipv4Addr, mtu: u32) -> Result<Port, Failure> {
        let name = self.name.as_deref();
        Link::open(name)?.loopback_up()?;
        let port = Interface {
            namespace: name.unwrap_or_default().into(),
            device: DEVICE.into(),
            address,
            mac: [0; 6],
            mtu,
        };
        // Programs are not those of an experiment: their host sends as it does to a network card.
        let made = tun(&port, true)?;
        within(name, || {
            for (key, value) in [
                ("ipv4/ping_group_range", "0 0"),
                ("ipv4/ip_unprivileged_port_start", "0"),
                ("ipv6/conf/all/disable_ipv6", "1"),
            ] {
                // A kernel without the key has other rules.
                let _ = fs::write(format!("/proc/sys/net/{key}"), value);
            }
            Ok(())
        })?;
        Ok(Port::Tun(made))
    }

    /// Starts a program there.
    ///
    /// # Errors
    /// There is no such program.
    pub fn start(&self, mut program: Command) -> Result<Pid, Failure> {
        within(self.name.as_deref(), || {
            let child = program.env(SERVER, ENDS[0].to_string()).spawn();
            let child = child.context(|| "starting a program".into())?;
            Ok(Pid::from_raw(child.id() as i32))
        })
    }

    /// Waits until as many sockets listen as there are servers. One that takes longer, or does not listen, is not waited for.
    ///
    /// # Errors
    /// A server has ended in error.
    pub fn await_listeners(&self, servers: &[(Pid, &String)]) -> Result<(), Failure> {
        let listening = |name: &str| {
            let text =
                fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
            let is_open = |line: &&str| match line.split_whitespace().nth(3) {
                Some("0A") => true,
                Some("07") => name.starts_with("udp"),
                _ => false,
            };
            text.lines().filter(is_open).count()
        };
        let began = Instant::now();
        within(self.name.as_deref(), || {
            while ["tcp", "tcp6", "udp", "udp6"]
                .map(listening)
                .iter()
                .sum::<usize>()
                < servers.len()
                && began.elapsed() < PATIENCE
            {
                servers.iter().try_for_each(refuse_failed)?;
                sleep(Duration::from_millis(10));
            }
            Ok(())
        })
    }
}

/// Refuses a server that has ended in error. A server that puts itself into the background ends with status 0.
fn refuse_failed((pid, command): &(Pid, &String)) -> Result<(), Failure> {
    let ended = match waitpid(*pid, Some(WaitPidFlag::WNOHANG)) {
        Ok(status) => status_of(status).filter(|status| *status != 0),
        Err(_) => None, // it was waited for before
    };
    ended.map_or(Ok(()), |status| {
        Err(Failure(format!(
            "--server: got \"{command}\"; it ended with status {status} before the program could begin"
        )))
    })
}

/// The two ends of a path of our own, and their devices.
///
/// # Errors
/// The kernel refuses.
pub fn before(mtu: u32) -> Result<([End; 2], Vec<Port>), Failure> {
    unshare(CloneFlags::CLONE_NEWNET).context(|| "creating a network namespace".into())?;
    let ends = [End::new()?, End::new()?];
    let ports = vec![ends[0].set_up(ENDS[0], mtu)?, ends[1].set_up(ENDS[1], mtu)?];
    Link::open(ends[1].name.as_deref())?.route(&Route::new(None, ENDS[0]))?;
    Ok((ends, ports))
}

/// Two interfaces of the machine. Programs run as they would without the path.
///
/// # Errors
/// An interface cannot be opened.
pub fn between(wires: &[String; 2]) -> Result<([End; 2], Vec<Port>), Failure> {
    let open = |wire: &String| -> Result<Port, Failure> {
        let opened = Wire::open(wire).context(|| format!("opening interface {wire}"))?;
        Ok(Port::Wire(opened))
    };
    let here = || End {
        file: None,
        name: None,
    };
    Ok(([here(), here()], vec![open(&wires[0])?, open(&wires[1])?]))
}
