//! Every congestion control of this crate, by name.

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

/// A congestion control that can be selected by name.
#[derive(Clone, Copy)]
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
    /// Builds one, with those of the endpoint's options that it supports.
    pub build: fn(&Config) -> Box<dyn CongestionControl>,
}

/// Every congestion control of this crate.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "bbr",
        summary: "paces at the largest delivery rate, twice the bandwidth-delay product in flight (version 1)",
        source: "Cardwell et al. 2016, Linux 6.1",
        feedback: Feedback::None,
        build: |config| Box::new(Bbr::new(config.mss.into())),
    },
    Algorithm {
        name: "bbr3",
        summary: "BBR bounded by losses: long-term and short-term limits on rate and window (version 3)",
        source: "draft-ietf-ccwg-bbr-01",
        feedback: Feedback::None,
        build: |config| Box::new(Bbr3::new(config.mss.into())),
    },
    Algorithm {
        name: "cubic",
        summary: "window a cubic function of the time since the last loss; Linux's default",
        source: "RFC 9438",
        feedback: Feedback::None,
        build: |config| Box::new(Cubic::new(config)),
    },
    Algorithm {
        name: "cubic-2005",
        summary: "the first CUBIC, as in ns-2: keeps 0.8 of the window, growth has a bound, no HyStart",
        source: "Rhee, Xu 2005",
        feedback: Feedback::None,
        build: |config| Box::new(Cubic::of_2005(config)),
    },
    Algorithm {
        name: "cubic-hystart++",
        summary: "cubic, leaving slow start by HyStart++ instead of Linux's HyStart",
        source: "RFC 9438, RFC 9406",
        feedback: Feedback::None,
        build: |config| Box::new(Cubic::with_hystart_plus_plus(config)),
    },
    Algorithm {
        name: "cubic-nohystart",
        summary: "cubic, leaving slow start by loss alone",
        source: "RFC 9438",
        feedback: Feedback::None,
        build: |config| Box::new(Cubic::without_hystart(config)),
    },
    Algorithm {
        name: "dctcp",
        summary: "backs off by the share of marked packets; for data centres, needs ECN",
        source: "RFC 8257",
        feedback: Feedback::Exact,
        build: |_| Box::new(Dctcp::new()),
    },
    Algorithm {
        name: "illinois",
        summary: "backs off on loss; the queueing delay sets by how much, and the growth",
        source: "Liu, Basar, Srikant 2008",
        feedback: Feedback::None,
        build: |_| Box::new(Illinois::new()),
    },
    Algorithm {
        name: "ledbat",
        summary: "keeps the queueing delay at 100 ms, for background transfers",
        source: "RFC 6817",
        feedback: Feedback::None,
        build: |_| Box::new(Ledbat::new()),
    },
    Algorithm {
        name: "ledbat++",
        summary: "as ledbat, at 60 ms of round-trip delay, with slowdowns",
        source: "draft-irtf-iccrg-ledbat-plus-plus-01",
        feedback: Feedback::None,
        build: |_| Box::new(LedbatPlus::new()),
    },
    Algorithm {
        name: "newreno",
        summary: "NewReno to the letter of RFC 5681: grows per acknowledgement, used or not; halves the flight size",
        source: "RFC 5681, RFC 6582",
        feedback: Feedback::None,
        build: |config| Box::new(NewReno::new(config)),
    },
    Algorithm {
        name: "prague",
        summary: "backs off by the share of marked packets, on ECT(1) with accurate feedback; for L4S",
        source: "draft-briscoe-iccrg-prague-congestion-control-04",
        feedback: Feedback::Accurate,
        build: |config| Box::new(Prague::new(config.rtt_independence)),
    },
    Algorithm {
        name: "reno",
        summary: "additive increase, multiplicative decrease (NewReno)",
        source: "RFC 5681, RFC 6582",
        feedback: Feedback::None,
        build: |config| Box::new(Reno::new(config)),
    },
    Algorithm {
        name: "vegas",
        summary: "keeps two to four segments queued",
        source: "Brakmo, Peterson 1995",
        feedback: Feedback::None,
        build: |_| Box::new(Vegas::new()),
    },
    Algorithm {
        name: "westwood",
        summary: "backs off to the estimated bandwidth times the least RTT (Westwood+)",
        source: "Mascolo et al. 2001",
        feedback: Feedback::None,
        build: |_| Box::new(Westwood::new()),
    },
];

/// The congestion control called `name`.
pub fn by_name(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_is_found_by_its_name() {
        for algorithm in ALGORITHMS {
            assert_eq!(
                (by_name(algorithm.name).expect("listed").build)(&Config::default()).name(),
                algorithm.name
            );
        }
    }
}
