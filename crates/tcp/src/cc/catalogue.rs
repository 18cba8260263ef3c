//! The congestion controls by name: those of this crate, and others that a program adds.

use std::fmt;
use std::sync::Arc;

use super::bbr::{Bbr, Bbr3};
use super::dctcp::Dctcp;
use super::illinois::Illinois;
use super::ledbat::Ledbat;
use super::ledbat_plus::LedbatPlus;
use super::prague::Prague;
use super::vegas::Vegas;
use super::westwood::Westwood;
use super::{CongestionControl, Cubic, NewReno, Reno};
use crate::config::Config;
use crate::ecn::Feedback;

/// Builds a congestion control.
type Build = dyn Fn(&Config) -> Box<dyn CongestionControl> + Send + Sync;

/// A congestion control that can be selected by name.
#[derive(Clone)]
pub struct Algorithm {
    /// Its name, as in Linux where Linux has it.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The document that defines it.
    pub source: &'static str,
    /// The feedback that it needs beyond RFC 3168's; endpoints ask for it whatever their configuration.
    /// [`Feedback::None`] if it needs none.
    pub feedback: Feedback,
    build: Arc<Build>,
}

impl Algorithm {
    /// A congestion control that needs no feedback of its own. `build` makes one for a connection, with those of the
    /// endpoint's options that it supports.
    pub fn new(
        name: &'static str,
        summary: &'static str,
        source: &'static str,
        build: impl Fn(&Config) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            summary,
            source,
            feedback: Feedback::None,
            build: Arc::new(build),
        }
    }

    /// It needs this feedback: [`Feedback::Exact`] of every mark, as DCTCP, or [`Feedback::Accurate`], as Prague, whose
    /// packets are ECT(1).
    pub fn needs(self, feedback: Feedback) -> Self {
        Self { feedback, ..self }
    }

    /// Makes one for a connection.
    pub fn build(&self, config: &Config) -> Box<dyn CongestionControl> {
        (self.build)(config)
    }

    /// What an endpoint keeps of it.
    pub(crate) fn maker(&self) -> Maker {
        Maker {
            feedback: self.feedback,
            build: Arc::clone(&self.build),
        }
    }
}

/// An [`Algorithm`] without its description: there may be hundreds of thousands of endpoints.
pub(crate) struct Maker {
    /// As there.
    pub feedback: Feedback,
    build: Arc<Build>,
}

impl Maker {
    /// As [`Algorithm::build`].
    pub fn build(&self, config: &Config) -> Box<dyn CongestionControl> {
        (self.build)(config)
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Algorithm")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The congestion controls known by name: those of this crate, and others added by [`Catalogue::add`].
#[derive(Clone, Debug)]
pub struct Catalogue {
    algorithms: Vec<Algorithm>,
}

impl Catalogue {
    /// All congestion controls of this crate.
    pub fn new() -> Self {
        Self {
            algorithms: vec![
                Algorithm::new("bbr", "paces at the largest delivery rate, twice the bandwidth-delay product in flight (version 1)", "Cardwell et al. 2016, Linux 6.1", |config| Box::new(Bbr::new(config.mss.into()))),
                Algorithm::new("bbr3", "BBR bounded by losses: long-term and short-term limits on rate and window (version 3)", "draft-ietf-ccwg-bbr-01", |config| Box::new(Bbr3::new(config.mss.into()))),
                Algorithm::new("cubic", "window a cubic function of the time since the last loss; Linux's default", "RFC 9438", |config| Box::new(Cubic::new(config))),
                Algorithm::new("cubic-2005", "the first CUBIC, as in ns-2: keeps 0.8 of the window, growth has a bound, no HyStart", "Rhee, Xu 2005", |config| Box::new(Cubic::of_2005(config))),
                Algorithm::new("cubic-hystart++", "cubic, leaving slow start by HyStart++ instead of Linux's HyStart", "RFC 9438, RFC 9406", |config| Box::new(Cubic::with_hystart_plus_plus(config))),
                Algorithm::new("cubic-nohystart", "cubic, leaving slow start by loss alone", "RFC 9438", |config| Box::new(Cubic::without_hystart(config))),
                Algorithm::new("dctcp", "backs off by the share of marked packets; for data centres, needs ECN", "RFC 8257", |_| Box::new(Dctcp::new())).needs(Feedback::Exact),
                Algorithm::new("illinois", "backs off on loss; the queueing delay sets by how much, and the growth", "Liu, Basar, Srikant 2008", |_| Box::new(Illinois::new())),
                Algorithm::new("ledbat", "keeps the queueing delay at 100 ms, for background transfers", "RFC 6817", |_| Box::new(Ledbat::new())),
                Algorithm::new("ledbat++", "as ledbat, at 60 ms of round-trip delay, with slowdowns", "draft-irtf-iccrg-ledbat-plus-plus-01", |_| Box::new(LedbatPlus::new())),
                Algorithm::new("newreno", "NewReno to the letter of RFC 5681: grows per acknowledgement, used or not; halves the flight size", "RFC 5681, RFC 6582", |config| Box::new(NewReno::new(config))),
                Algorithm::new("prague", "backs off by the share of marked packets, on ECT(1) with accurate feedback; for L4S", "draft-briscoe-iccrg-prague-congestion-control-04", |config| Box::new(Prague::new(config.rtt_independence))).needs(Feedback::Accurate),
                Algorithm::new("reno", "additive increase, multiplicative decrease (NewReno)", "RFC 5681, RFC 6582", |config| Box::new(Reno::new(config))),
                Algorithm::new("vegas", "keeps two to four segments queued", "Brakmo, Peterson 1995", |_| Box::new(Vegas::new())),
                Algorithm::new("westwood", "backs off to the estimated bandwidth times the least RTT (Westwood+)", "Mascolo et al. 2001", |_| Box::new(Westwood::new())),
            ],
        }
    }

    /// Adds a congestion control. It replaces one of the same name.
    pub fn add(&mut self, algorithm: Algorithm) {
        self.algorithms.retain(|known| known.name != algorithm.name);
        self.algorithms.push(algorithm);
    }

    /// The congestion control called `name`.
    pub fn get(&self, name: &str) -> Option<&Algorithm> {
        self.algorithms
            .iter()
            .find(|algorithm| algorithm.name == name)
    }

    /// All of them, in the order in which they were added; pages and `sojourn list tcp` use it.
    pub fn iter(&self) -> impl Iterator<Item = &Algorithm> {
        self.algorithms.iter()
    }
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_found_by_its_name() {
        let catalogue = Catalogue::new();
        for algorithm in catalogue.iter() {
            let found = catalogue.get(algorithm.name).expect("listed");
            assert_eq!(found.build(&Config::default()).name(), algorithm.name);
        }
    }

    #[test]
    fn an_algorithm_added_replaces_one_of_its_name() {
        let mut catalogue = Catalogue::new();
        let before = catalogue.iter().count();
        let reno =
            |name| Algorithm::new(name, "mine", "none", |config| Box::new(Reno::new(config)));
        catalogue.add(reno("mine"));
        catalogue.add(reno("cubic"));
        assert_eq!(catalogue.iter().count(), before + 1);
        assert_eq!(
            catalogue.get("cubic").map(|cubic| cubic.summary),
            Some("mine")
        );
    }
}
