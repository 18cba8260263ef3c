//! `policy`: drops or marks arrivals with a probability that a program outside sets while the run goes on, such as a
//! learned controller. Without it the probability stays as given.

use alloc::boxed::Box;

use crate::aqm::{Algorithm, Aqm, Backlog, Verdict};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters;
use crate::parameters::Parameters;
use crate::settings::Settings;
use crate::single::Single;

use sojourn_units::Time;

parameters! {
    /// The parameters of a policy.
    #[derive(Default)]
    pub struct Config {
        /// probability of dropping or marking an arrival, set from outside
        pub probability: f64 as Probability,
    }
    besides {
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool,
    }
}

/// A queue whose probability is set from outside.
pub struct Policy {
    config: Config,
}

impl Policy {
    /// A policy with its first probability.
    pub const fn new(config: Config) -> Self {
        Self { config }
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
            Verdict::Mark
        } else {
            Verdict::DROP
        }
    }
}

impl Algorithm for Policy {
    fn change(&mut self, settings: &Settings, _limit: Limit) -> Result<(), SettingError> {
        let config = Config::default().given(settings)?;
        let ecn = settings.ecn_or(config.ecn)?;
        self.config = Config { ecn, ..config };
        Ok(())
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("probability", self.config.probability);
    }
}

/// `policy`.
pub fn policy<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "policy",
        summary: "drop or mark probability set from outside while the run goes on",
        source: "this project",
        keys: Box::new(|| Config::default().keys()),
        make: Box::new(|settings| {
            let config = Config::default().given(settings)?;
            let ecn = settings.ecn_or(config.ecn)?;
            let limit = settings.limit_or(Limit::Packets(1000));
            let policy = Policy::new(Config { ecn, ..config });
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
}
