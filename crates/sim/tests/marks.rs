//! A mark that a packet cannot carry is a drop (RFC 3168 §5), for disciplines of one's own too.

use sojourn_aqm::{
    Algorithm, Aqm, Backlog, Discipline, Environment, Limit, Packet, Parameters, Single, Verdict,
};
use sojourn_experiment::{Source, read};
use sojourn_units::Time;

sojourn_aqm::parameters! {
    struct Config {
        /// desired utilization
        gamma: f64,
        /// smoothing
        alpha: f64,
    }
}

const DEFAULT: Config = Config {
    gamma: 0.98,
    alpha: 0.15,
};

/// Adaptive virtual queue (Kunniyur and Srikant 2001): signals what a virtual queue of a lower rate has no room for.
struct Avq {
    config: Config,
    signal: Verdict,
    capacity: f64,
    virtual_capacity: f64,
    virtual_queue: f64,
    last: Time,
}

impl Algorithm for Avq {}

impl<P: Packet> Aqm<P> for Avq {
    fn on_enqueue(&mut self, packet: &P, _: Backlog, now: Time, _: &mut Environment<P>) -> Verdict {
        let dt = (now - self.last).as_secs_f64();
        self.last = now;
        self.virtual_queue = (self.virtual_queue - self.virtual_capacity * dt).max(0.0);
        let bytes = f64::from(packet.bytes());
        let verdict = if self.virtual_queue + bytes > 150_000.0 {
            self.signal
        } else {
            self.virtual_queue += bytes;
            Verdict::Pass
        };
        let Config { gamma, alpha } = self.config;
        let grown = self.virtual_capacity + alpha * gamma * self.capacity * dt;
        self.virtual_capacity = (grown.min(self.capacity) - alpha * bytes).max(0.0);
        verdict
    }
}

fn avq<P: Packet + Send + 'static>(name: &'static str, signal: Verdict) -> Discipline<P> {
    Discipline {
        name,
        summary: "adaptive virtual queue",
        source: "Kunniyur and Srikant 2001",
        keys: Box::new(|| DEFAULT.keys()),
        make: Box::new(move |settings| {
            let capacity = settings.rate.bytes_per_sec();
            let aqm = Avq {
                config: DEFAULT.given(settings)?,
                signal,
                capacity,
                virtual_capacity: capacity,
                virtual_queue: 0.0,
                last: Time::ZERO,
            };
            let limit = settings.limit_or(Limit::Packets(1000));
            Ok(Box::new(Single::new(aqm, limit)))
        }),
    }
}

#[test]
fn a_discipline_that_marks_drops_what_is_not_ecn_capable() {
    let mut catalogue = sojourn_sim::catalogue();
    catalogue.disciplines.add(avq("marks", Verdict::Mark));
    catalogue.disciplines.add(avq("drops", Verdict::DROP));
    let mut names = sojourn_sim::names();
    for name in ["marks", "drops"] {
        let keys = Vec::new();
        let name = name.into();
        names
            .disciplines
            .push(sojourn_experiment::DisciplineKeys { name, keys });
    }
    let text = "experiment = { duration = '20 s', warmup = '5 s' }
        link = { rate = '10 Mbit/s', buffer = '1 bdp' }
        queue = [{ aqm = 'marks' }, { aqm = 'drops' }]
        [[traffic]]
        kind = 'bulk'
        flows = 8
        tcp = 'newreno'
        rtt = '50 ms'
        start = '0..1 s'";
    let name = "test.toml";
    let plan = read(Source { name, text }, &[], &names).unwrap_or_else(|error| panic!("{error}"));
    let dropped = plan.specs().map(|spec| {
        let run = sojourn_sim::run(spec, &catalogue).unwrap_or_else(|error| panic!("{error}"));
        (
            run.bottleneck["down"].dropped_aqm,
            run.bottleneck["down"].marked,
        )
    });
    // A mark that cannot be made is a drop: both arms drop the same packets.
    assert_eq!(dropped.collect::<Vec<_>>(), [(437, 0), (437, 0)]);
}
