//! A program with its network behind Sojourn's own path, or two interfaces with the path between them for as long as a program
//! runs.
//!
//! ```text
//! servers ── [TUN 100.64.0.1] ── path, down ─▶ ── [TUN 100.64.0.2] ── the program
//! other hosts ── [interface] ── path, down ─▶ ── [interface] ── other hosts
//! ```

use std::ffi::OsString;
use std::io::stderr;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::{Value as Json, json};
use sojourn_datapath::datapath::Ends;
use sojourn_datapath::flows::{Flow, Flows, Kind};
use sojourn_datapath::ip::Headers;
use sojourn_datapath::network::Plan;
use sojourn_datapath::scheduling::{Priority, ask_for_real_time};
use sojourn_datapath::{Clock, Datapath, Frame};
use sojourn_experiment::derived;
use sojourn_path::Route;
use sojourn_units::{Time, Way};

use super::ends::{ENDS, End, before, between};
use super::foreign::catalogue;
use super::live::{self, Live, Watched};
use super::outside::{self, Outside, Waiting};
use super::path::{built, read_run, record};
use super::sandbox::{PASSED_ON, as_plain, handled, status_of};
use super::{Context, Failure, release};
use crate::job::ShellJob;
use crate::recording::{Appeared, AppearedKind, FlowFigures, Recording};

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
