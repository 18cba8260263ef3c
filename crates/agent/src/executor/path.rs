//! A run whose packets pass Sojourn's own path: the kernel's hosts with their traffic, a TUN device at each, and between them
//! the links of the experiment in a thread of their own.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::thread::{self, JoinHandle};

use sojourn_aqm::DropReason;
use sojourn_datapath::datapath::{Ends, cpu_time};
use sojourn_datapath::flows::{Flow, Flows, Kind};
use sojourn_datapath::ip::{Carried, Headers};
use sojourn_datapath::network::{QueueState, states};
use sojourn_datapath::port::Port;
use sojourn_datapath::scheduling::{Priority, ask_for_real_time};
use sojourn_datapath::{Clock, Datapath, Frame, Row, network, watch};
use sojourn_experiment::RunSpec;
use sojourn_experiment::derived;
use sojourn_experiment::model::Experiment;
use sojourn_path::Route;
use sojourn_units::{Duration, Time, Way};

use super::foreign::catalogue;
use super::live::{self, Live, Watched};
use super::setup::Network;
use super::tap::{flow_of_echo, flow_of_ports};
use super::{Context, Failure, allow_files, release, session};
use crate::capture;
use crate::decision::Foreign;
use crate::disciplines::Counters;
use crate::job::{Action, PathJob};
use crate::recording::{Fate, Lateness, PacketRow, PathFigures, QueueFigures, Recording};

/// The routes and the ports of the flows of a job.
struct JobFlows {
    /// By flow: the routes of data and of what returns, and the ports by which they leave.
    flows: Vec<[(Route, u16); 2]>,
    /// The flows as their packets show them, if someone watches.
    seen: Option<Flows>,
}

impl Ends for JobFlows {
    fn came(&mut self, _: usize, headers: &Headers, now: Time) -> Option<(u32, bool, Route, u16)> {
        let (flow, returning) = match headers.carried {
            Carried::Echo {
                reply, identifier, ..
            } => flow_of_echo(identifier, reply)?,
            _ => flow_of_ports(headers.source.port(), headers.destination.port())?,
        };
        let (route, port) = self.flows.get(flow as usize)?[usize::from(returning)];
        if let Some(seen) = &mut self.seen {
            seen.came(headers, Way::Down, now);
        }
        Some((flow, returning, route, port))
    }

    fn delivered(&mut self, frame: &Frame, now: Time) {
        let Some(seen) = &mut self.seen else {
            return;
        };
        let of = Headers::read(&frame.bytes).and_then(|headers| seen.known(&headers));
        if let Some((flow, returning)) = of {
            let frame = Frame {
                flow,
                returning,
                ..frame.clone()
            };
            seen.delivered(&frame, now);
        }
    }
}

impl Watched for JobFlows {
    fn flows(&self) -> &[Flow] {
        self.seen.as_ref().map_or(&[], |seen| &seen.all)
    }

    fn number(&self, at: usize) -> Option<usize> {
        let flow = &self.flows()[at];
        let (from, to) = (flow.key.sender.port(), flow.key.receiver.port());
        let found = match flow.kind {
            Kind::Echo => flow_of_echo(from, false),
            _ => flow_of_ports(from, to),
        };
        found
            .filter(|(_, returning)| !returning)
            .map(|(number, _)| number as usize)
    }
}

/// The path's thread, which ends when the run does.
struct Running {
    /// Closed to end it earlier.
    stop: UnixStream,
    thread: JoinHandle<Result<Recording, Failure>>,
}

/// Carries out a job. Calls `progress` once a second with the seconds done so far.
///
/// # Errors
/// The kernel does not support the job; everything that was set up is removed again.
pub fn execute(told: &PathJob, progress: &mut dyn FnMut(u64)) -> Result<Recording, Failure> {
    let job = &told.job;
    allow_files(&job.flows)?;
    let spec = read_run(&told.document, &told.foreign, &told.congestion_controls)?;
    let mut hosts = Network::build(job)?;
    let mut running = None;
    let begin = |zero_ns| {
        running = Some(begin(told, &spec, &mut hosts, zero_ns)?);
        // If it is refused, the path's thread says so.
        let _ = ask_for_real_time(Priority::Traffic);
        Ok(zero_ns)
    };
    let done = session::run(job, begin, progress);
    let Some(running) = running else {
        return done;
    };
    drop(running.stop);
    let ended = running.thread.join();
    let of_path = ended.unwrap_or_else(|_| Err(Failure("the path's thread has failed".into())))?;
    let mut recording = done?;
    recording.faults.extend(of_path.faults);
    recording.timeouts = hosts.counted("TCPTimeouts")?;
    recording.kernel = release()?;
    Ok(Recording {
        queues: of_path.queues,
        packets: of_path.packets,
        captured: of_path.captured,
        events: of_path.events,
        path: of_path.path,
        ..recording
    })
}

/// A run from its document.
pub fn read_run(
    document: &str,
    foreign: &[Foreign],
    congestion_controls: &[String],
) -> Result<RunSpec, Failure> {
    let foreign = foreign.iter().map(Foreign::keys).collect();
    let names = network::names(foreign, congestion_controls.to_vec());
    RunSpec::read(document, &names).map_err(|error| Failure(error.to_string()))
}

fn begin(
    told: &PathJob,
    spec: &RunSpec,
    hosts: &mut Network<'_>,
    zero_ns: u64,
) -> Result<Running, Failure> {
    let (job, experiment) = (&told.job, &spec.experiment);
    let watcher = told.watcher.as_deref();
    let mut live = watcher
        .map(|socket| Live::at(socket, spec, &told.foreign))
        .transpose()?;
    let disciplines = catalogue(&told.foreign, told.decider.as_deref());
    let mut plan = network::Plan::new(experiment, spec.queue, spec.seed, &disciplines)
        .map_err(|error| Failure(error.to_string()))?;
    let named = |step: &crate::job::Step| match &step.action {
        Action::Tun(port) => Some(port.namespace.clone()),
        _ => None,
    };
    let ports: Vec<String> = job.setup.iter().filter_map(named).collect();
    let port = |namespace: &String| {
        let at = ports.iter().position(|known| known == namespace);
        at.ok_or_else(|| Failure(format!("{namespace} has no device")))
    };
    let mut flows = Vec::new();
    for (derived, flow) in derived::flows(experiment, spec.seed).zip(&job.flows) {
        let [there, back] = plan.routes_of(derived.traffic, derived.way);
        let (sender, receiver) = (port(&flow.sender)?, port(&flow.receiver)?);
        flows.push([(there, receiver as u16), (back, sender as u16)]);
    }
    let (stop, stopped) = UnixStream::pair().context(|| "opening a pair of sockets".into())?;
    let mut path = Datapath::new(
        built(plan, experiment),
        JobFlows {
            flows,
            seen: live.is_some().then(Flows::default),
        },
        std::mem::take(&mut hosts.tuns)
            .into_iter()
            .map(Port::Tun)
            .collect(),
        Clock::since(zero_ns),
        experiment.links[0].overhead,
        (experiment.warmup, experiment.record.series),
    );
    let end = Time::ZERO + experiment.duration;
    let run = move || {
        let note = ask_for_real_time(Priority::Path);
        let carrying = || "carrying packets".to_owned();
        live::carry(&mut path, &mut live, stopped.as_fd(), end).context(carrying)?;
        Ok(record(&mut path, note, end))
    };
    let thread = thread::Builder::new().name("path".into()).spawn(run);
    let thread = thread.context(|| "starting the path's thread".into())?;
    Ok(Running { stop, thread })
}

/// A network that records what an experiment wants to have captured.
pub fn built(plan: network::Plan<'_>, experiment: &Experiment) -> network::Network {
    let mut network = plan.build();
    // As of Linux: of `[link]`, a direction without a queue is captured, too.
    let link = &experiment.links[0];
    let is_open = link.nodes.is_none() && link.up.is_none();
    network.observer.capture = experiment.record.pcap.map(|_| watch::Capture {
        note: capture::note,
        rows: Vec::new(),
        others: is_open.then_some(1),
    });
    network
}

/// What a path has recorded. `note`: what the user should know.
pub fn record<E: Ends>(path: &mut Datapath<E>, note: Option<String>, end: Time) -> Recording {
    let bins = path.take_bins();
    let at_end = states(&path.network);
    let queue = |(number, state): (usize, &QueueState)| QueueFigures {
        at_end: counters(state),
        series: bins.iter().map(|bin| counters(&bin[number])).collect(),
    };
    let late = path.lateness();
    let media = path.network.media();
    let cells = path.network.observer.cells.iter().zip(media);
    let cells = cells.map(|((link, names), cell)| (*link, cell.figures(names, end)));
    let ways = [Way::Down, Way::Up];
    let used = media
        .iter()
        .flat_map(|cell| ways.map(|way| cell.utilization(way, end)));
    let (cells, used) = (
        cells.collect(),
        (path.network.links().len()..).zip(used).collect(),
    );
    let watch = &mut path.network.observer;
    let mut faults: Vec<String> = late.fault().into_iter().collect();
    if watch.unrecorded > 0 {
        let (kept, lost) = (watch.rows.len(), watch.unrecorded);
        faults.push(format!(
            "only the first {kept} packets were recorded, not the last {lost}"
        ));
    }
    let impaired = watch.impaired.iter();
    let impaired =
        impaired.map(|(hop, lost, twice)| (hop.link, hop.way == Way::Up, *lost, Some(*twice)));
    Recording {
        queues: at_end.iter().enumerate().map(queue).collect(),
        faults,
        events: watch.rows.len() as u64,
        impaired: impaired.collect(),
        path: Some(PathFigures {
            lateness: Lateness {
                n: late.n,
                p50: late.p50,
                p99: late.p99,
                p99_9: late.p99_9,
                max: late.max,
            },
            // Of this thread: it has carried the packets.
            cpu_s: cpu_time().map_or(0.0, Duration::as_secs_f64),
            notes: note.into_iter().collect(),
            appeared: None,
            cells,
            used,
        }),
        captured: watch
            .capture
            .take()
            .map_or(Vec::new(), |capture| capture.rows),
        packets: watch.take_rows().into_iter().map(packet).collect(),
        ..Recording::default()
    }
}

fn counters(state: &QueueState) -> Counters {
    Counters {
        dropped: state.dropped.all,
        overflow: state.dropped.overflow,
        marked: Some(state.marked),
        backlog_packets: state.backlog_packets,
        probability: state.probability,
    }
}

fn packet(row: Row) -> PacketRow {
    PacketRow {
        entered_ns: row.entered.as_nanos(),
        settled_ns: row.settled.as_nanos(),
        air_us: row.air.as_micros().min(u32::MAX.into()) as u32,
        flow: row.flow,
        bytes: row.bytes,
        queue: row.queue,
        returning: row.returning,
        fate: match row.fate {
            watch::Fate::Delivered => Fate::Delivered,
            watch::Fate::Marked => Fate::Marked,
            watch::Fate::Dropped(DropReason::Overflow) => Fate::DroppedOverflow,
            watch::Fate::Dropped(_) => Fate::DroppedAqm,
            watch::Fate::Waiting => Fate::Waiting,
            watch::Fate::Lost => Fate::Lost,
        },
        refused: row.refused,
    }
}
