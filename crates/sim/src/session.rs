//! One run that its caller drives: step by step, looked at and acted upon in between.

use sojourn_aqm::Catalogue;
use sojourn_experiment::RunSpec;
use sojourn_units::Time;

use crate::build::{RunError, build};
use crate::packet::SimPacket;
use crate::result::RunResult;
use crate::simulation::Simulation;
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
    simulation: Simulation,
    now: Time,
    end: Time,
    wall: std::time::Duration,
}

impl Session {
    /// A run at its beginning.
    ///
    /// # Errors
    /// What cannot be built: a discipline refuses its settings, or `catalogue` or the congestion controls lack a name.
    pub fn new(spec: RunSpec, catalogue: &Catalogue<SimPacket>) -> Result<Self, RunError> {
        let began = std::time::Instant::now();
        let simulation = build(&spec.experiment, spec.queue, spec.seed, catalogue)?;
        Ok(Self {
            now: Time::ZERO,
            end: Time::ZERO + spec.experiment.duration,
            spec,
            simulation,
            wall: began.elapsed(),
        })
    }

    /// The run.
    pub const fn spec(&self) -> &RunSpec {
        &self.spec
    }

    /// How far it has come: everything before this instant has happened.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Where it ends.
    pub const fn end(&self) -> Time {
        self.end
    }

    /// True once it has come to its end.
    pub fn is_finished(&self) -> bool {
        self.now == self.end
    }

    /// Goes on until `until` or the run's end, whichever is first. What happens at that very instant is left for later.
    pub fn step(&mut self, until: Time) {
        self.advance(until, u64::MAX);
    }

    /// As [`Session::step`], but stops after `events` events at the latest, so that the caller can do other things.
    pub fn advance(&mut self, until: Time, events: u64) {
        let until = until.min(self.end);
        if until <= self.now {
            return;
        }
        let began = std::time::Instant::now();
        self.now = self.simulation.advance(until, self.end, events);
        self.wall += began.elapsed();
    }

    /// What the run gave. One that has not come to its end is first run to there.
    pub fn finish(mut self) -> RunResult {
        self.step(self.end);
        let began = std::time::Instant::now();
        let RunSpec {
            experiment,
            queue,
            seed,
            ..
        } = self.spec;
        let arm = &experiment.queues[queue];
        let result = RunResult {
            queue: arm.aqm.clone(),
            label: arm.label.clone(),
            seed,
            ..summarise(&experiment, queue, self.simulation, seed)
        };
        RunResult {
            wall_s: (self.wall + began.elapsed()).as_secs_f64(),
            ..result
        }
    }
}

/// Runs to the end.
///
/// # Errors
/// As [`Session::new`].
pub fn run(spec: RunSpec, catalogue: &Catalogue<SimPacket>) -> Result<RunResult, RunError> {
    Ok(Session::new(spec, catalogue)?.finish())
}
