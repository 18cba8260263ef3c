//! The outside, by `pasta` (Debian: passt): it stays in the machine's network and carries what comes from a device in the servers'
//! namespace by sockets of its own, so that it needs no rights there.
//!
//! ```text
//! the outside ── pasta ── [TAP 100.64.1.1] servers [TUN 100.64.0.1] ── path ── [TUN 100.64.0.2] ── the program
//! ```
//!
//! Datagrams and echoes pass the servers' namespace as a router. `pasta` has no congestion control towards a namespace: what it
//! read from a server it would send as fast as the program's window allows, whatever the queue drops. So connections of TCP end
//! in the servers' namespace, from where the kernel's TCP sends on what has come. They keep their addresses.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use nix::libc::linger;
use nix::mount::{MsFlags, mount};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, connect, listen, setsockopt,
    socket, sockopt,
};
use sojourn_datapath::ip::{Carried, Headers};

use super::ends::{DEVICE, ENDS};
use super::link::{self, Link};
use super::namespace::within;
use super::{Context, Failure};
use crate::job::Route;

/// The variables that name to the program the address of this machine's own servers, those on 127.0.0.1 too: ours, and mahimahi's.
pub const HOSTS: [&str; 2] = ["SOJOURN_HOST", "MAHIMAHI_BASE"];
/// The address at which they are, and the router of the servers' namespace.
pub const MACHINE: Ipv4Addr = Ipv4Addr::new(100, 64, 1, 2);
/// The address of the servers' namespace on its device, and that of the machine's resolver.
const OWN: Ipv4Addr = Ipv4Addr::new(100, 64, 1, 1);
const RESOLVER: Ipv4Addr = Ipv4Addr::new(100, 64, 1, 3);
/// Its device there, the prefix and the largest packet, as pasta has it.
const OUTSIDE: &str = "outside";
const PREFIX: u8 = 24;
/// The Ethernet address of pasta: without it, it takes that of the machine's default route, and a tunnel has none.
const MAC: &str = "02:00:64:40:01:02";
const MTU: u32 = 65_520;
const QUEUE: u32 = 10_000;
/// The table with the route by which connections end in the servers' namespace.
const TABLE: u8 = 100;
const TCP: u8 = 6;
/// How long pasta may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// Sockets by which resolvers are asked that do not use the program's network.
const RESOLVERS: [&str; 2] = [
    "/run/systemd/resolve/io.systemd.Resolve",
    "/run/nscd/socket",
];

/// pasta, which waits in the machine's network to be told the namespace.
pub struct Waiting {
    child: Child,
    /// What it says last.
    said: JoinHandle<Option<String>>,
}

impl Waiting {
    /// Starts it. It ends with this process namespace.
    ///
    /// # Errors
    /// There is no shell.
    pub fn start() -> Result<Self, Failure> {
        let [_, program] = ENDS;
        // No port of the machine is forwarded. As root it would become a user without rights over the namespace; it gives up
        // the right to look into this process, so the shell opens the namespace for it.
        let script = format!(
            "read -r net && exec 7< \"$net\" && exec pasta --foreground --quiet --ipv4-only --runas 0 --netns-only --no-netns-quit \
             -t none -u none -T none -U none --address {program} --mac-addr {MAC} --gateway {MACHINE} --dns-forward {RESOLVER} \
             --ns-ifname {OUTSIDE} --netns /proc/self/fd/7"
        );
        let mut child = Command::new("/bin/sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // The terminal's signals are not for it.
            .process_group(0)
            .spawn()
            .context(|| "starting pasta".into())?;
        let from = child.stderr.take();
        let said = spawn(move || {
            let lines = from
                .into_iter()
                .flat_map(|from| BufReader::new(from).lines());
            let lines = lines.map_while(Result::ok);
            lines
                .filter(|line| !line.is_empty() && !line.contains("syslog"))
                .last()
        });
        Ok(Self { child, said })
    }

    /// Connects the servers' namespace to the outside, and names the machine's resolver to all programs in `resolver`, which
    /// takes the place of `/etc/resolv.conf`. `namespace`: its name and the number of its file.
    ///
    /// # Errors
    /// pasta says why, or the kernel refuses.
    pub fn attach(mut self, namespace: (&str, i32), resolver: &Path) -> Result<Outside, Failure> {
        let connecting = || "connecting the outside".to_owned();
        // The number of this process where pasta looks for it.
        let own = fs::read_link("/proc/self").context(connecting)?;
        if let Some(mut told) = self.child.stdin.take() {
            // If it has ended, that is noticed below.
            let _ = writeln!(told, "/proc/{}/fd/{}", own.display(), namespace.1);
        }
        let name = namespace.0;
        let began = Instant::now();
        let index = loop {
            if let Ok(index) = link::index(Some(name), OUTSIDE) {
                break index;
            }
            if self.child.try_wait().context(connecting)?.is_some() {
                let said = self.said.join().ok().flatten().unwrap_or_default();
                return Err(Failure(format!("pasta has failed: {said}")));
            }
            if began.elapsed() > PATIENCE {
                return Err(Failure("pasta does not connect the outside".into()));
            }
            sleep(Duration::from_millis(2));
        };
        let link = Link::open(Some(name))?;
        link.address(index, OWN, PREFIX).context(connecting)?;
        link.up_with(index, MTU, QUEUE).context(connecting)?;
        link.route(&Route::new(None, MACHINE))?;
        link.take_all(TABLE).context(connecting)?;
        for from in [DEVICE, OUTSIDE] {
            link.look_up(TABLE, from, TCP).context(connecting)?;
        }
        within(Some(name), || {
            Ok(fs::write("/proc/sys/net/ipv4/ip_forward", "1")?)
        })?;
        resolve_by(resolver).context(|| "naming the resolver".into())?;
        let (sender, listeners) = channel();
        // Its threads are in the namespace, too.
        within(Some(name), || {
            spawn(move || accept_all(&listeners));
            Ok(())
        })?;
        Ok(Outside {
            namespace: name.to_owned(),
            opened: BTreeSet::new(),
            listeners: sender,
        })
    }
}

/// Puts a file in the place of `/etc/resolv.conf`, with its settings but for the servers.
fn resolve_by(file: &Path) -> io::Result<()> {
    const FILE: &str = "/etc/resolv.conf";
    let Ok(text) = fs::read_to_string(FILE) else {
        // There is nothing in whose place it could be put.
        return Ok(());
    };
    let others = text.lines().filter(|line| !line.starts_with("nameserver"));
    let own = format!("nameserver {RESOLVER}");
    let lines: Vec<&str> = [own.as_str()].into_iter().chain(others).collect();
    fs::write(file, lines.join("\n") + "\n")?;
    let hidden = RESOLVERS.map(|socket| (Path::new("/dev/null"), socket));
    let there = hidden
        .into_iter()
        .filter(|(_, socket)| Path::new(socket).exists());
    for (with, path) in [(file, FILE)].into_iter().chain(there) {
        mount(
            Some(with),
            path,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )?;
    }
    Ok(())
}

/// The outside as the path knows it.
pub struct Outside {
    namespace: String,
    /// Ports at which connections to the outside are accepted.
    opened: BTreeSet<u16>,
    listeners: Sender<TcpListener>,
}

impl Outside {
    /// Sees to it that a packet of the program's that opens a connection finds a listener. A port at which a server listens on
    /// all addresses is that server's.
    pub fn came(&mut self, headers: &Headers) {
        let port = headers.destination.port();
        if matches!(headers.carried, Carried::Segment { syn: true, .. }) && self.opened.insert(port)
        {
            let made = within(Some(&self.namespace), || {
                listener(port).context(|| format!("listening at port {port}"))
            });
            // A thread that has ended cannot be told.
            let _ = made.map(|listener| self.listeners.send(listener));
        }
    }
}

/// Accepts what goes to any address, at this port.
fn listener(port: u16) -> nix::Result<TcpListener> {
    let made = transparent()?;
    bind(made.as_raw_fd(), &SockaddrIn::new(0, 0, 0, 0, port))?;
    listen(&made, Backlog::new(BACKLOG)?)?;
    Ok(made.into())
}

/// A socket of TCP that may have addresses of others.
fn transparent() -> nix::Result<std::os::fd::OwnedFd> {
    let made = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    setsockopt(&made, sockopt::ReuseAddr, &true)?;
    setsockopt(&made, sockopt::IpTransparent, &true)?;
    Ok(made)
}

fn accept_all(listeners: &Receiver<TcpListener>) {
    for listener in listeners {
        spawn(move || {
            for near in listener.incoming().flatten() {
                spawn(move || relay(near));
            }
        });
    }
}

/// Carries a connection of the program on to where it was to go.
fn relay(near: TcpStream) {
    let far = near.local_addr().and_then(open);
    let Ok(far) = far else {
        // The program's is reset.
        let _ = setsockopt(
            &near,
            sockopt::Linger,
            &linger {
                l_onoff: 1,
                l_linger: 0,
            },
        );
        return;
    };
    // What one end has sent leaves at once.
    let _ = near.set_nodelay(true).and_then(|()| far.set_nodelay(true));
    let (Ok(back), Ok(forth)) = (near.try_clone(), far.try_clone()) else {
        return;
    };
    let up = spawn(move || carry(&back, &forth));
    carry(&far, &near);
    let _ = up.join();
}

fn carry(mut from: &TcpStream, mut to: &TcpStream) {
    match io::copy(&mut from, &mut to) {
        Ok(_) => drop(to.shutdown(Shutdown::Write)),
        Err(_) => drop(
            from.shutdown(Shutdown::Both)
                .and(to.shutdown(Shutdown::Both)),
        ),
    }
}

/// A connection of the program's address, the only one that pasta expects.
fn open(to: SocketAddr) -> io::Result<TcpStream> {
    let [servers, program] = ENDS;
    // The listener hears what is for the servers' namespace itself, too, where nobody listens.
    let IpAddr::V4(address) = to.ip() else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    if [servers, OWN].contains(&address) {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let made = transparent()?;
    bind(
        made.as_raw_fd(),
        &SockaddrIn::from(SocketAddrV4::new(program, 0)),
    )?;
    connect(
        made.as_raw_fd(),
        &SockaddrIn::from(SocketAddrV4::new(address, to.port())),
    )?;
    Ok(made.into())
}
