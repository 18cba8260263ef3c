//! BLUE (Feng, Kandlur, Saha and Shin 1999): one probability, raised by losses and lowered when the link is idle.
//!
//! When a packet is lost because there is no room (or, with `level`, arrives at a longer queue), the probability grows
//! by `increment`. When the link becomes idle, it shrinks by `decrement`. It changes at most once per `freeze_time`.
//! Arrivals are dropped or marked with this probability.
//!
//! The defaults are from the paper's simulations; it only recommends that `increment` be much larger than `decrement`.
//! A departure from the paper: the queue counts as idle as soon as its last packet has left, because a token bucket never
//! requests a packet from an empty queue.

use alloc::boxed::Box;

use sojourn_units::{Duration, Time};

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters;
use crate::parameters::Parameters;
use crate::single::Single;
use crate::verdict::Verdict;

parameters! {
    /// The parameters of BLUE.
    pub struct Config {
        /// increase of the probability on a loss (d1)
        pub increment: f64 as Probability,
        /// decrease of the probability when the link falls idle (d2)
        pub decrement: f64 as Probability,
        /// minimum time between two changes of the probability
        pub freeze_time: Duration,
        /// an arrival at a longer queue raises the probability too (L)
        pub level: Option<Limit>,
    }
    besides {
        /// Mark ECN-capable packets instead of dropping them.
        pub ecn: bool,
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            increment: 0.0025,
            decrement: 0.000_25,
            freeze_time: Duration::from_millis(100),
            level: None,
            ecn: false,
        }
    }
}

/// BLUE for one queue.
pub struct Blue {
    config: Config,
    /// p_m, 0 to 1.
    probability: f64,
    last_update: Option<Time>,
}

impl Blue {
    /// A BLUE before its first packet.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            probability: 0.0,
            last_update: None,
        }
    }

    fn change(&mut self, by: f64, now: Time) {
        let frozen = self
            .last_update
            .is_some_and(|last| now.saturating_since(last) <= self.config.freeze_time);
        if !frozen {
            self.probability = (self.probability + by).clamp(0.0, 1.0);
            self.last_update = Some(now);
        }
    }
}

impl<P: Packet> Aqm<P> for Blue {
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        let above_level = match self.config.level {
            Some(Limit::Packets(level)) => backlog.packets > level,
            Some(Limit::Bytes(level)) => backlog.bytes > level,
            None => false,
        };
        if above_level {
            self.change(self.config.increment, now);
        }
        if env.uniform() >= self.probability {
            Verdict::Pass
        } else if self.config.ecn && packet.ecn().is_capable() {
            Verdict::Mark
        } else {
            Verdict::DROP
        }
    }
}

impl Algorithm for Blue {
    fn on_overflow(&mut self, _backlog: Backlog, now: Time) {
        self.change(self.config.increment, now);
    }

    fn on_empty(&mut self, now: Time) {
        self.change(-self.config.decrement, now);
    }

    fn on_drained(&mut self, now: Time) {
        self.change(-self.config.decrement, now);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("probability", self.probability);
    }
}

/// `blue`.
pub fn blue<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "blue",
        summary: "drop probability raised by loss and lowered by idleness",
        source: "Feng, Kandlur, Saha and Shin 1999",
        keys: Box::new(|| Config::default().keys()),
        make: Box::new(|settings| {
            let config = Config::default().given(settings)?;
            let ecn = settings.ecn_or(config.ecn)?;
            let limit = settings.limit_or(Limit::Packets(1000));
            let blue = Blue::new(Config { ecn, ..config });
            Ok(Box::new(Single::new(blue, limit)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;
    use crate::packet::Ecn;

    fn share_hit(blue: &mut Blue, ecn: Ecn, hit: Verdict, backlog: Backlog) -> f64 {
        let mut env = Environment::new(3);
        let mut packet = Datagram::new(0, 1514);
        packet.ecn = ecn;
        let hits = (0..10_000)
            .filter(|_| blue.on_enqueue(&packet, backlog, Time::from_secs(100), &mut env) == hit)
            .count();
        hits as f64 / 10_000.0
    }

    #[test]
    fn loss_raises_and_idleness_lowers_at_most_once_per_freeze_time() {
        let mut blue = Blue::new(Config::default());
        let ms = Time::from_millis;
        for (at, expected) in [(0, 0.0025), (100, 0.0025), (101, 0.005), (150, 0.005)] {
            blue.on_overflow(Backlog::default(), ms(at));
            assert!((blue.probability - expected).abs() < 1e-12, "{at} ms");
        }
        for (at, expected) in [(160, 0.005), (202, 0.00475), (303, 0.0045)] {
            blue.on_empty(ms(at));
            assert!((blue.probability - expected).abs() < 1e-12, "{at} ms");
        }
        for (at, expected) in [(310, 0.0045), (404, 0.00425)] {
            blue.on_drained(ms(at));
            assert!((blue.probability - expected).abs() < 1e-12, "{at} ms");
        }
    }

    #[test]
    fn arrivals_are_hit_with_the_probability() {
        let mut blue = Blue::new(Config {
            increment: 0.3,
            ecn: true,
            ..Config::default()
        });
        blue.on_overflow(Backlog::default(), Time::ZERO);
        for (ecn, hit) in [(Ecn::NotEct, Verdict::DROP), (Ecn::Ect0, Verdict::Mark)] {
            let share = share_hit(&mut blue, ecn, hit, Backlog::default());
            assert!((0.28..0.32).contains(&share), "{share}");
        }
    }

    #[test]
    fn a_queue_above_the_level_counts_as_loss() {
        let mut blue = Blue::new(Config {
            increment: 1.0,
            level: Some(Limit::Packets(3)),
            ..Config::default()
        });
        let queue = |packets| Backlog {
            packets,
            ..Backlog::default()
        };
        assert_eq!(
            share_hit(&mut blue, Ecn::NotEct, Verdict::DROP, queue(3)),
            0.0
        );
        assert_eq!(
            share_hit(&mut blue, Ecn::NotEct, Verdict::DROP, queue(4)),
            1.0
        );
    }

    #[test]
    fn the_probability_stays_between_zero_and_one() {
        let mut blue = Blue::new(Config {
            increment: 0.6,
            decrement: 0.9,
            freeze_time: Duration::ZERO,
            ..Config::default()
        });
        for at in 1..4 {
            blue.on_overflow(Backlog::default(), Time::from_secs(at));
        }
        assert_eq!(blue.probability, 1.0);
        for at in 4..7 {
            blue.on_empty(Time::from_secs(at));
        }
        assert_eq!(blue.probability, 0.0);
    }
}
