//! A run that its caller drives: step it, observe it, change its settings.

use std::cell::OnceCell;

use sojourn_experiment::change::Changes;
use sojourn_experiment::network::RunError;
use sojourn_experiment::{RunSpec, derived};
use sojourn_measure::interval::Reader;
use sojourn_measure::probe::{PacketEvent, QueueProbe};
use sojourn_measure::series::{FlowSample, QueueSample};
use sojourn_units::Time;

use crate::build::build;
use crate::catalogue::Catalogue;
use crate::result::RunResult;
use crate::sampler::{look_at_flows, look_at_queues};
use crate::simulation::Simulation;
use crate::space::Space;
use crate::summary::summarise;

/// One run under way.
///
/// ```
/// use sojourn_experiment::{Source, read};
/// use sojourn_sim::{Session, catalogue, names};
/// use sojourn_units::Time;
///
/// let text = r#"
/// experiment = { duration = "10 s" }
/// link       = { rate = "10 Mbit/s" }
/// queue      = [{ aqm = "codel" }]
/// traffic    = [{ kind = "bulk", flows = 4, rtt = "40 ms" }]
/// "#;
/// let plan = read(Source { name: "four.toml", text }, &[], &names())?;
/// let spec = plan.specs().next().expect("one run");
///
/// let mut session = Session::new(spec, &catalogue())?;
/// session.step(Time::from_secs(1));
/// assert_eq!(session.now(), Time::from_secs(1));
/// while !session.is_finished() {
///     session.step(session.now() + sojourn_units::Duration::from_millis(100));
/// }
/// let result = session.finish();
/// assert_eq!(result.simulated_s, 10.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Session {
    spec: RunSpec,
    pub(crate) simulation: Simulation,
    pub(crate) changes: Changes,
    pub(crate) space: OnceCell<Space>,
    pub(crate) now: Time,
    end: Time,
    /// When it was last observed.
    pub(crate) observed: Time,
    /// Drops and marks of each queue at the last [`Session::observe_into`].
    pub(crate) counted: Vec<(u64, u64)>,
}

/// The state of a run at one instant.
pub struct Observation {
    /// The previous observation, or the start of the run: counters count from here.
    pub since: Time,
    /// When this observation was made.
    pub now: Time,
    /// All queues in the order of the links, downlink before uplink.
    pub queues: Vec<QueueSample>,
    /// All flows.
    pub flows: Vec<FlowSample>,
}

impl Session {
    /// Builds a run at time zero.
    ///
    /// # Errors
    /// A discipline refuses its settings, or a name is missing from `catalogue`.
    pub fn new(spec: RunSpec, catalogue: &Catalogue) -> Result<Self, RunError> {
        let simulation = build(&spec.experiment, spec.queue, spec.seed, catalogue)?;
        let egresses = derived::queues(&spec.experiment, spec.queue);
        Ok(Self {
            changes: Changes::of(&spec),
            space: OnceCell::new(),
            counted: vec![(0, 0); egresses.len()],
            observed: Time::ZERO,
            now: Time::ZERO,
            end: Time::ZERO + spec.experiment.duration,
            spec,
            simulation,
        })
    }

    /// The run.
    pub const fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// The current time: all events before it have been handled.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// When the run ends.
    pub const fn end(&self) -> Time {
        self.end
    }

    /// True once the run has reached its end.
    pub fn is_finished(&self) -> bool {
        self.now == self.end
    }

    /// Advances to `until` or the end of the run, whichever is first. Events at that very instant stay pending.
    pub fn step(&mut self, until: Time) {
        self.advance(until, u64::MAX);
    }

    /// As [`Session::step`], but stops after `events` events, or a few more, so that the caller regains control.
    pub fn advance(&mut self, until: Time, events: u64) {
        let until = until.min(self.end);
        if until <= self.now {
            return;
        }
        self.now = self.simulation.advance(until, self.end, events);
    }

    /// Notes what happens to every packet at the queues from now on, for [`Session::take_events`].
    pub fn watch_packets(&mut self) {
        for probe in &mut self.simulation.network.observer.probes {
            probe.watch();
        }
    }

    /// What has happened to packets since the last call, a list per queue in the order of [`Observation::queues`]; empty
    /// lists without [`Session::watch_packets`].
    pub fn take_events(&mut self) -> Vec<Vec<PacketEvent>> {
        let probes = self.simulation.network.observer.probes.iter_mut();
        probes.map(QueueProbe::take_events).collect()
    }

    /// Samples all queues and flows, with what has happened since the last observation.
    pub fn observe(&mut self) -> Observation {
        let since = std::mem::replace(&mut self.observed, self.now);
        let span = self.now - since;
        let simulation = &mut self.simulation;
        let queues = look_at_queues(&mut simulation.network, self.now, Reader::Caller);
        let sources = &mut simulation.hosts.sources;
        Observation {
            since,
            now: self.now,
            queues,
            flows: look_at_flows(sources, self.now, span, Reader::Caller).collect(),
        }
    }

    /// Changes a key from now on; see [`Changes::set`].
    ///
    /// # Errors
    /// As there.
    pub fn set(&mut self, key: &str, value: &str, catalogue: &Catalogue) -> Result<(), RunError> {
        let network = &mut self.simulation.network;
        let given = (key, value);
        self.changes
            .set(network, &self.spec, &catalogue.disciplines, given, self.now)
    }

    /// Returns the results. Runs to the end first if it has not got there yet. `wall_s` is the caller's to measure: the
    /// simulator has no clock.
    pub fn finish(mut self) -> RunResult {
        self.step(self.end);
        let RunSpec {
            experiment,
            queue,
            seed,
            ..
        } = self.spec;
        let arm = &experiment.queues[queue];
        RunResult {
            queue: arm.aqm.clone(),
            label: arm.label.clone(),
            seed,
            ..summarise(self.simulation)
        }
    }
}

/// Executes a run to its end. `wall_s` is the caller's to measure.
///
/// # Errors
/// As [`Session::new`].
pub fn run(spec: RunSpec, catalogue: &Catalogue) -> Result<RunResult, RunError> {
    Ok(Session::new(spec, catalogue)?.finish())
}
