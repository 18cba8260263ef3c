//! `policy`: drops or marks arrivals with a probability that a program outside sets while the run goes on, such as a
//! learned controller, or that a [`Network`] of a file decides about. Without either it stays as given.

use alloc::boxed::Box;
use alloc::format;

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::{Key, SettingError};
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters;
use crate::parameters::Parameters;
use crate::settings::Settings;
use crate::single::Single;
use crate::verdict::Verdict;

use sojourn_units::{Kind, Rate, Time, Value};

mod network;

pub use network::{INPUTS, Network};

parameters! {
    /// The parameters of a policy.
    #[derive(Default)]
    pub struct Config {
        /// probability of dropping or marking an arrival, set from outside, or the first with weights
        pub probability: f64 as Probability,
    }
    besides {
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool,
    }
}

/// A queue whose probability is set from outside or by a network.
pub struct Policy {
    config: Config,
    learned: Option<Learned>,
}

/// A network at work.
struct Learned {
    network: Network,
    /// The link's rate at the start, in bits per nanosecond.
    rate: f64,
    next: Time,
    since: Since,
}

/// What happened since the last decision.
#[derive(Clone, Copy, Default)]
struct Since {
    packets: u64,
    bytes: u64,
    /// Sum and longest of the sojourn times in nanoseconds.
    waited: u64,
    longest: u64,
    dropped: u64,
    marked: u64,
}

impl Policy {
    /// A policy with its first probability.
    pub const fn new(config: Config) -> Self {
        let learned = None;
        Self { config, learned }
    }

    /// The policy whose probability `network` decides about, on a link with this rate.
    #[must_use]
    pub fn with(self, network: Network, rate: Rate) -> Self {
        Self {
            learned: Some(Learned {
                next: Time::ZERO + network.interval,
                network,
                rate: rate.as_bps() as f64 / 1e9,
                since: Since::default(),
            }),
            ..self
        }
    }

    fn note(&mut self, note: impl FnOnce(&mut Since)) {
        if let Some(learned) = &mut self.learned {
            note(&mut learned.since);
        }
    }
}

impl Learned {
    fn seen(&self, backlog: Backlog, probability: f64) -> [f64; INPUTS.len()] {
        let since = &self.since;
        let sent = since.bytes as f64 * 8.0 / self.rate;
        [
            since.packets as f64,
            since.waited as f64 / since.packets.max(1) as f64 / 1e6,
            since.longest as f64 / 1e6,
            backlog.packets as f64,
            backlog.bytes as f64,
            since.dropped as f64,
            since.marked as f64,
            (sent / self.network.interval.as_nanos() as f64).min(1.0),
            backlog.bytes as f64 * 8.0 / self.rate / 1e6,
            probability,
        ]
    }
}

impl<P: Packet> Aqm<P> for Policy {
    fn on_enqueue(
        &mut self,
        packet: &P,
        _backlog: Backlog,
        _now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        if env.uniform() >= self.config.probability {
            Verdict::Pass
        } else if self.config.ecn && packet.ecn().is_capable() {
            self.note(|since| since.marked += 1);
            Verdict::Mark
        } else {
            self.note(|since| since.dropped += 1);
            Verdict::DROP
        }
    }

    fn on_dequeue(
        &mut self,
        packet: &P,
        _backlog: Backlog,
        now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        self.note(|since| {
            let waited = (now - packet.enqueued()).as_nanos();
            since.packets += 1;
            since.bytes += u64::from(packet.bytes());
            since.waited = since.waited.saturating_add(waited);
            since.longest = since.longest.max(waited);
        });
        Verdict::Pass
    }
}

impl Algorithm for Policy {
    fn on_overflow(&mut self, _backlog: Backlog, _now: Time) {
        self.note(|since| since.dropped += 1);
    }

    fn on_head_drops(&mut self, packets: u64) {
        self.note(|since| since.dropped += packets);
    }

    fn next_timer(&self) -> Option<Time> {
        self.learned.as_ref().map(|learned| learned.next)
    }

    fn on_timer(&mut self, backlog: Backlog, now: Time) {
        if let Some(learned) = &mut self.learned {
            let seen = learned.seen(backlog, self.config.probability);
            self.config.probability = learned.network.decide(&seen, self.config.probability);
            learned.since = Since::default();
            learned.next = now.saturating_add(learned.network.interval);
        }
    }

    fn change(&mut self, settings: &Settings, _limit: Limit) -> Result<(), SettingError> {
        if self.learned.is_none() && settings.get("weights").is_some() {
            return Err(SettingError::fixed("weights"));
        }
        let config = Config::default().given(settings)?;
        let ecn = settings.ecn_or(config.ecn)?;
        let probability = match self.learned {
            Some(_) => self.config.probability,
            None => config.probability,
        };
        self.config = Config { ecn, probability };
        Ok(())
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("probability", self.config.probability);
    }
}

/// The network of the key `weights`, if it is given.
fn network(settings: &Settings) -> Result<Option<Network>, SettingError> {
    let Some(given) = settings.get("weights") else {
        return Ok(None);
    };
    let Value::File(file) = given else {
        return Err(SettingError::new("weights", "must be a file"));
    };
    let refuse = |what| SettingError::new("weights", format!("\"{}\": {what}", file.name));
    let network = Network::read(&file.text).map_err(refuse)?;
    settings.note("weights", Some(given.clone()));
    Ok(Some(network))
}

/// `policy`.
pub fn policy<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "policy",
        summary: "drop or mark probability set from outside while the run goes on, or by a learned network",
        source: "this project",
        keys: Box::new(|| {
            let weights = Key {
                name: "weights",
                kind: Kind::File,
                default: "none".into(),
                doc: "the network that decides about the probability: a file of JSON, or of numpy.savez",
            };
            let mut keys = Config::default().keys();
            keys.push(weights);
            keys
        }),
        make: Box::new(|settings| {
            let config = Config::default().given(settings)?;
            let ecn = settings.ecn_or(config.ecn)?;
            let limit = settings.limit_or(Limit::Packets(1000));
            let policy = Policy::new(Config { ecn, ..config });
            let policy = match network(settings)? {
                Some(network) => policy.with(network, settings.rate),
                None => policy,
            };
            Ok(Box::new(Single::new(policy, limit)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;
    use crate::packet::Ecn;

    #[test]
    fn arrivals_are_hit_with_the_probability_and_marked_if_they_can_be() {
        let mut env = Environment::new(1);
        let mut policy = Policy::new(Config {
            probability: 0.25,
            ecn: true,
        });
        let mut packet = Datagram::new(0, 1514);
        for (ecn, hit) in [(Ecn::Ect0, Verdict::Mark), (Ecn::NotEct, Verdict::DROP)] {
            packet.ecn = ecn;
            let hits = (0..10_000)
                .filter(|_| {
                    let verdict =
                        policy.on_enqueue(&packet, Backlog::default(), Time::ZERO, &mut env);
                    assert!(verdict == hit || verdict == Verdict::Pass);
                    verdict == hit
                })
                .count();
            // Binomial: 2500 expected, a standard deviation of 43.
            assert!(hits.abs_diff(2500) < 200, "{hits}");
        }
    }

    /// Two inputs, a hidden unit that is cut off at zero, two changes.
    const FILE: &str = r#"{
        "interval": "20 ms", "inputs": ["backlog_packets", "probability"], "output": [0.1, -0.1], "most": 0.5,
        "layers": [
            {"weights": [[1, 0]], "bias": [-3]},
            {"weights": [[1], [0]], "bias": [0, 1.5]}
        ]
    }"#;

    #[test]
    fn a_network_decides_by_its_largest_output_within_its_bounds() {
        let mut network = Network::read(FILE).expect("it is whole");
        let mut seen = [0.0; INPUTS.len()];
        // Outputs: what the backlog is above 3 packets, or 1.5.
        for (backlog, probability, next) in [
            (5.0, 0.2, 0.3),
            (4.0, 0.2, 0.1),
            (4.5, 0.2, 0.3),
            (0.0, 0.05, 0.0),
            (9.0, 0.45, 0.5),
        ] {
            seen[3] = backlog;
            let decided = network.decide(&seen, probability);
            assert!((decided - next).abs() < 1e-12, "{backlog}: {decided}");
        }
    }

    #[test]
    fn a_probability_is_the_output_itself() {
        let text = r#"{"interval": "1 ms", "inputs": ["utilisation"], "output": "probability",
            "layers": [{"weights": [[2e-1]], "bias": [0.1]}]}"#;
        let mut network = Network::read(text).expect("it is whole");
        let mut seen = [0.0; INPUTS.len()];
        seen[7] = 1.0;
        assert!((network.decide(&seen, 0.9) - 0.3).abs() < 1e-12);
    }

    #[test]
    fn a_file_that_is_not_whole_is_refused_with_its_place() {
        for (from, to, told) in [
            ("\"20 ms\"", "20", "interval: must be a time"),
            (
                "backlog_packets",
                "backlog",
                "inputs: must be some of packets, ",
            ),
            ("[0.1, -0.1]", "\"change\"", "output: must be"),
            ("0.5", "1.5", "most: must be a number from 0 to 1"),
            (
                "[[1, 0]]",
                "[[1]]",
                "layers.0: weights: must be 1 lists, one per bias, of 2 numbers",
            ),
            (
                "[0, 1.5]",
                "[0]",
                "layers.1: bias: must be 2 numbers, one per output",
            ),
            ("\"layers\"", "\"layer\"", "has no \"layers\""),
            ("        ]", "        ", "not JSON: expected"),
            ("-3", "1e999", "not JSON: number out of range"),
        ] {
            let error = Network::read(&FILE.replace(from, to)).expect_err(to);
            assert!(error.starts_with(told), "{to}: {error}");
        }
    }

    #[test]
    fn decisions_come_at_the_intervals_from_what_was_seen_since() {
        let mut settings = Settings::new(Rate::from_mbps(12), 1514);
        // The probability is the utilisation, at most 0.5.
        let text = r#"{"interval": "20 ms", "inputs": ["utilisation"], "output": "probability",
            "layers": [{"weights": [[1]], "bias": [0]}]}"#;
        let file = sojourn_units::TextFile {
            name: "weights.json".into(),
            text: text.into(),
        };
        settings.values.push(("weights".into(), Value::File(file)));
        let mut qdisc = policy::<Datagram<u32>>()
            .build(&settings)
            .expect("it is whole");
        let mut env = Environment::new(1);
        let probability = |qdisc: &dyn crate::Qdisc<Datagram<u32>>| {
            let mut seen = f64::NAN;
            qdisc.state(&mut |_, value| seen = value);
            seen
        };
        // 20 ms are 30 kB on this link.
        for interval in 1..=3_u64 {
            let now = Time::from_millis(20 * interval);
            assert_eq!(qdisc.next_timer(), Some(now));
            for _ in 0..interval {
                qdisc.enqueue(Datagram::new(0, 3000), now, &mut env);
            }
            let left = core::iter::from_fn(|| qdisc.dequeue(now, &mut env)).count();
            qdisc.on_timer(now, &mut env);
            assert!((probability(qdisc.as_ref()) - 0.1 * left as f64).abs() < 1e-12);
        }
    }
}
