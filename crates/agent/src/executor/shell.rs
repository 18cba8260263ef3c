//! A program with its network behind Sojourn's own path, or two interfaces with the path between them for as long as a program
//! runs.
//!
//! ```text
//! servers ── [TUN 100.64.0.1] ── path, down ─▶ ── [TUN 100.64.0.2] ── the program
//! other hosts ── [interface] ── path, down ─▶ ── [interface] ── other hosts
//! ```

use std::ffi::OsString;
use std::fs;
use std::io::stderr;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::{Value as Json, json};
use sojourn_datapath::datapath::Ends;
use sojourn_datapath::flows::{Flow, Flows, Kind};
use sojourn_datapath::ip::Headers;
use sojourn_datapath::network::Plan;
use sojourn_datapath::port::Port;
use sojourn_datapath::scheduling::{Priority, ask_for_real_time};
use sojourn_datapath::wire::Wire;
use sojourn_datapath::{Clock, Datapath, Frame};
use sojourn_experiment::derived;
use sojourn_path::Route;
use sojourn_units::{Time, Way};

use super::foreign::catalogue;
use super::link::Link;
use super::live::{self, Live, Watched};
use super::namespace::within;
use super::outside::{self, Outside, Waiting};
use super::path::{built, read_run, record};
use super::sandbox::{PASSED_ON, as_plain, handled, network_namespace, status_of};
use super::setup::tun;
use super::{Context, Failure, release};
use crate::job::{Interface, Route as To, ShellJob};
use crate::recording::{Appeared, AppearedKind, FlowFigures, Recording};

/// The addresses of the servers' end and of the program's, in the network set aside for providers (RFC 6598).
pub(super) const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 64, 0, 1), Ipv4Addr::new(100, 64, 0, 2)];
/// The variable that names the servers' address to the program.
const SERVER: &str = "SOJOURN_SERVER";
/// The device of each.
pub(super) const DEVICE: &str = "sojourn0";
/// How long servers may take to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// The flows of a program and its servers.
struct Appearing {
    flows: Flows,
    routes: [Route; 2],
    /// The address of the program, if it is at an end of our own.
    program: Option<IpAddr>,
    outside: Option<Outside>,
}

impl Ends for Appearing {
    fn came(
        &mut self,
        port: usize,
        headers: &Headers,
        now: Time,
    ) -> Option<(u32, bool, Route, u16)> {
        let way = [Way::Down, Way::Up][port];
        if let Some(outside) = &mut self.outside
            && way == Way::Up
            && headers.destination.ip() != ENDS[0]
        {
            outside.came(headers);
        }
        let (flow, returning) = self.flows.came(headers, way, now);
        Some((flow, returning, self.routes[port], 1 - port as u16))
    }

    fn beside(&self, port: usize) -> Option<usize> {
        self.program.is_none().then_some(1 - port)
    }

    fn delivered(&mut self, frame: &Frame, now: Time) {
        self.flows.delivered(frame, now);
    }

    fn end_bin(&mut self) {
        self.flows.end_bin();
    }
}

impl Watched for Appearing {
    fn flows(&self) -> &[Flow] {
        &self.flows.all
    }

    fn number(&self, at: usize) -> Option<usize> {
        Some(at)
    }

    fn described(&self) -> Json {
        let one = |flow: &Flow| json!({ "name": flow.key.service(self.program), "direction": flow.way.name() });
        let all = self.flows.all.iter();
        all.take(live::MOST_FLOWS).map(one).collect()
    }
}

/// Where a program runs: in a namespace at an end of the path, or in the agent's own.
struct End {
    file: Option<OwnedFd>,
    /// A name under which the agent finds it.
    name: Option<String>,
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

    fn start(&self, mut program: Command) -> Result<Pid, Failure> {
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
    fn await_listeners(&self, servers: &[(Pid, &String)]) -> Result<(), Failure> {
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
fn before(mtu: u32) -> Result<([End; 2], Vec<Port>), Failure> {
    unshare(CloneFlags::CLONE_NEWNET).context(|| "creating a network namespace".into())?;
    let ends = [End::new()?, End::new()?];
    let ports = vec![ends[0].set_up(ENDS[0], mtu)?, ends[1].set_up(ENDS[1], mtu)?];
    Link::open(ends[1].name.as_deref())?.route(&To::new(None, ENDS[0]))?;
    Ok((ends, ports))
}

/// Two interfaces of the machine. Programs run as they would without the path.
fn between(wires: &[String; 2]) -> Result<([End; 2], Vec<Port>), Failure> {
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

/// Runs a program behind the path, or beside it; returns its exit status and what was recorded.
///
/// # Errors
/// The path cannot be built, or the kernel refuses.
pub fn execute(
    told: &ShellJob,
    user: (u32, u32),
    program: &[OsString],
) -> Result<(u8, Recording), Failure> {
    let spec = read_run(&told.document, &told.foreign, &told.congestion_controls)?;
    let experiment = &spec.experiment;
    let disciplines = catalogue(&told.foreign, told.decider.as_deref());
    let mut plan = Plan::new(experiment, spec.queue, spec.seed, &disciplines)
        .map_err(|error| Failure(error.to_string()))?;
    let routes = plan.routes_over(&derived::whole_route(experiment).map_err(Failure)?);
    let waiting = told.outside.as_ref().map(|_| Waiting::start());
    let (ends, ports) = match &told.between {
        None => before(derived::mtu(experiment))?,
        Some(wires) => between(wires)?,
    };
    let outside = match (waiting.transpose()?, &told.outside, &ends[0]) {
        (
            Some(waiting),
            Some(resolver),
            End {
                file: Some(file),
                name: Some(name),
            },
        ) => Some(waiting.attach((name, file.as_raw_fd()), resolver)?),
        _ => None,
    };
    let ours = told.between.is_none().then_some(ENDS[1].into());
    let signals = SignalFd::with_flags(&handled(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .context(|| "opening signals".into())?;
    let mut servers = Vec::new();
    for server in &told.servers {
        let mut command = as_plain(user, &["/bin/sh", "-c", server].map(OsString::from));
        // Standard output is the program's alone, so that it can be read by another.
        command.stdout(stderr());
        servers.push((ends[0].start(command)?, server));
    }
    ends[0].await_listeners(&servers)?;
    let mut command = as_plain(user, program);
    if outside.is_some() {
        command.envs(outside::HOSTS.map(|name| (name, outside::MACHINE.to_string())));
    }
    let child = ends[1].start(command)?;
    // Programs are started before, so that they have the usual scheduling.
    let note = ask_for_real_time(Priority::Path);
    let clock = Clock::begin()?;
    let flows = Appearing {
        flows: Flows::default(),
        routes,
        program: ours,
        outside,
    };
    let overhead = experiment.links[0].overhead;
    let mut path = Datapath::new(
        built(plan, experiment),
        flows,
        ports,
        clock,
        overhead,
        (sojourn_units::Duration::ZERO, experiment.record.series),
    );
    let watcher = told.watcher.as_deref();
    let mut live = watcher
        .map(|socket| Live::at(socket, &spec, &told.foreign))
        .transpose()?;
    let status = loop {
        live::carry(&mut path, &mut live, signals.as_fd(), Time::MAX)?;
        if let Some(status) = attend(&signals, child)? {
            break status;
        }
    };
    let length = clock.now()?;
    let mut recording = record(&mut path, note, length);
    let flows = std::mem::take(&mut path.ends.flows.all);
    if let Some(figures) = &mut recording.path {
        figures.appeared = Some((
            length.as_nanos(),
            flows.iter().map(|flow| appeared(flow, ours)).collect(),
        ));
    }
    recording.flows = flows.into_iter().map(figures).collect();
    recording.kernel = release()?;
    Ok((status, recording))
}

/// Passes on signals, and reaps processes. Returns the program's exit status once it has ended.
fn attend(signals: &SignalFd, child: Pid) -> Result<Option<u8>, Failure> {
    while let Some(signal) = signals
        .read_signal()
        .context(|| "reading a signal".into())?
    {
        let signal = Signal::try_from(signal.ssi_signo as i32);
        if let Some(signal) = signal.ok().filter(|signal| PASSED_ON.contains(signal)) {
            // It may have ended.
            let _ = kill(child, signal);
        }
    }
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(None),
            Ok(ended) if ended.pid() == Some(child) => {
                if let Some(status) = status_of(ended) {
                    return Ok(Some(status));
                }
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno).context(|| "waiting for programs".into()),
        }
    }
}

fn appeared(flow: &Flow, program: Option<IpAddr>) -> Appeared {
    Appeared {
        service: flow.key.service(program),
        kind: match flow.kind {
            Kind::Tcp => AppearedKind::Tcp,
            Kind::Echo => AppearedKind::Ping,
            Kind::Datagrams => AppearedKind::Udp,
        },
        up: flow.way == Way::Up,
        dscp: flow.dscp,
        span_ns: (flow.span.0.as_nanos(), flow.span.1.as_nanos()),
    }
}

fn figures(flow: Flow) -> FlowFigures {
    FlowFigures {
        sent: flow.sent,
        received: flow.received,
        retransmits: flow.retransmits,
        datagrams: (flow.kind != Kind::Tcp).then_some(flow.packets),
        round_trips: flow.round_trips,
        one_way_us: flow.one_way_us,
        series: flow
            .series
            .into_iter()
            .map(|received| (received, None))
            .collect(),
        ..FlowFigures::default()
    }
}
