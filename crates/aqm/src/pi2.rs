//! PI2: PIE's controller, squared (De Schepper, Bondarenko, Tsang and Briscoe 2016).
//!
//! A linear PI controller on the queueing delay adjusts p'. Classic traffic is dropped or marked with p'^2, which
//! makes its response linear in p' without PIE's table of gains. Scalable traffic (ECT(1)) is marked with k p'.
//!
//! Departures from the paper: the only exception for short queues is a single full frame; arriving CE counts as
//! scalable (RFC 9331 §5.1).

use alloc::boxed::Box;
use alloc::format;

use sojourn_units::{Duration, Time};

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::{Ecn, Packet};
use crate::parameters;
use crate::parameters::Parameters;
use crate::settings::Settings;
use crate::single::Single;
use crate::verdict::Verdict;

parameters! {
    /// The parameters of the coupled PI controller, for PI2 and DualPI2 (RFC 9332 Appendix A.1).
    pub struct Control {
        /// target queueing delay
        pub target: Duration,
        /// time between updates of p'
        pub tupdate: Duration,
        /// gain on the delay's deviation from target, per second
        pub alpha: f64,
        /// gain on the change of the delay, per second
        pub beta: f64,
        /// ratio of the scalable marking probability to p'
        pub coupling_factor: f64,
    }
}

impl Control {
    /// The defaults of PI2 (paper, §5).
    pub const PI2: Self = Self {
        target: Duration::from_millis(20),
        tupdate: Duration::from_millis(32),
        alpha: 0.3125,
        beta: 3.125,
        coupling_factor: 2.0,
    };

    /// These parameters, overridden by the given settings.
    pub(crate) fn read(self, settings: &Settings) -> Result<Self, SettingError> {
        let read = self.given(settings)?;
        for (key, span) in [("target", read.target), ("tupdate", read.tupdate)] {
            if span.is_zero() || span > Duration::from_secs(10) {
                let message = format!("got \"{span}\"; must be above 0 and at most 10 s");
                return Err(SettingError::new(key, message));
            }
        }
        for (key, number, most) in [
            ("alpha", read.alpha, 1000.0),
            ("beta", read.beta, 1000.0),
            ("coupling_factor", read.coupling_factor, 100.0),
        ] {
            if !(0.0..=most).contains(&number) {
                let message = format!("got {number}; must be from 0 to {most}");
                return Err(SettingError::new(key, message));
            }
        }
        Ok(read)
    }
}

/// The controller: derives p' from the delay.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Controller {
    control: Control,
    p: f64,
    previous: Duration,
}

impl Controller {
    /// A controller at p' = 0.
    pub const fn new(control: Control) -> Self {
        Self {
            control,
            p: 0.0,
            previous: Duration::ZERO,
        }
    }

    /// p', 0 to 1.
    pub const fn p(&self) -> f64 {
        self.p
    }

    /// The delay at the last update.
    pub const fn delay(&self) -> Duration {
        self.previous
    }

    /// Changes the parameters; p' is kept.
    pub const fn change(&mut self, control: Control) {
        self.control = control;
    }

    /// Updates p' for the given delay.
    pub fn update(&mut self, delay: Duration) {
        let now = delay.as_secs_f64();
        self.p += self.control.alpha * (now - self.control.target.as_secs_f64())
            + self.control.beta * (now - self.previous.as_secs_f64());
        self.p = self.p.clamp(0.0, 1.0);
        self.previous = delay;
    }
}

/// True for packets that expect scalable marking: ECT(1), and CE, which may have been ECT(1) (RFC 9331 §5.1).
pub(crate) fn is_scalable<P: Packet>(packet: &P) -> bool {
    matches!(packet.ecn(), Ecn::Ect1 | Ecn::Ce)
}

/// The parameters of PI2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The controller's parameters.
    pub control: Control,
    /// Backlog, in bytes, at or below which nothing is dropped: a full frame.
    pub mtu: u32,
    /// Mark ECN-capable packets instead of dropping them. Without it scalable packets count as classic.
    pub ecn: bool,
}

impl Default for Config {
    /// [`Config::new`] for the frames of Ethernet, 1514 bytes.
    fn default() -> Self {
        Self::new(1514)
    }
}

impl Config {
    /// The paper's defaults for frames of `mtu` bytes.
    pub const fn new(mtu: u32) -> Self {
        Self {
            control: Control::PI2,
            mtu,
            ecn: false,
        }
    }

    fn read(settings: &Settings) -> Result<Self, SettingError> {
        let default = Self::new(settings.mtu);
        Ok(Self {
            control: default.control.read(settings)?,
            ecn: settings.ecn_or(default.ecn)?,
            ..default
        })
    }
}

/// PI2 for one queue.
pub struct Pi2 {
    config: Config,
    controller: Controller,
    next_update: Time,
    /// Sojourn time of the last packet that left; zero if the queue is empty since.
    delay: Duration,
}

impl Pi2 {
    /// A PI2 before its first packet.
    pub fn new(config: Config) -> Self {
        Self {
            controller: Controller::new(config.control),
            next_update: Time::ZERO + config.control.tupdate,
            delay: Duration::ZERO,
            config,
        }
    }
}

impl<P: Packet> Aqm<P> for Pi2 {
    fn on_enqueue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        _now: Time,
        env: &mut Environment<P>,
    ) -> Verdict {
        let p = self.controller.p();
        if backlog.bytes <= u64::from(self.config.mtu) {
            return Verdict::Pass;
        }
        if self.config.ecn && is_scalable(packet) {
            return if env.uniform() < self.config.control.coupling_factor * p {
                Verdict::Mark
            } else {
                Verdict::Pass
            };
        }
        // Two draws below p' together have the probability p'^2, as in the paper.
        if env.uniform() >= p || env.uniform() >= p {
            Verdict::Pass
        } else if self.config.ecn && packet.ecn().is_capable() {
            Verdict::Mark
        } else {
            Verdict::DROP
        }
    }

    fn on_dequeue(
        &mut self,
        packet: &P,
        backlog: Backlog,
        now: Time,
        _env: &mut Environment<P>,
    ) -> Verdict {
        self.delay = if backlog.packets == 0 {
            Duration::ZERO
        } else {
            now.saturating_since(packet.enqueued())
        };
        Verdict::Pass
    }
}

impl Algorithm for Pi2 {
    fn change(&mut self, settings: &Settings, _limit: Limit) -> Result<(), SettingError> {
        let new = Config::read(settings)?;
        self.controller.change(new.control);
        self.config = new;
        Ok(())
    }

    fn next_timer(&self) -> Option<Time> {
        Some(self.next_update)
    }

    fn on_timer(&mut self, _backlog: Backlog, now: Time) {
        self.controller.update(self.delay);
        self.next_update = now.saturating_add(self.config.control.tupdate);
    }

    fn state(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        let p = self.controller.p();
        visit("p_prime", p);
        visit("probability", p * p);
        visit("qdelay_ms", self.controller.delay().as_millis_f64());
    }
}

/// `pi2`.
pub fn pi2<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "pi2",
        summary: "PI controller whose output is squared for classic traffic",
        source: "De Schepper, Bondarenko, Tsang and Briscoe 2016",
        keys: Box::new(|| Control::PI2.keys()),
        make: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            Ok(Box::new(Single::new(
                Pi2::new(Config::read(settings)?),
                limit,
            )))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;

    const LONG: Backlog = Backlog {
        packets: 10,
        bytes: 15_140,
        ce_bytes: 0,
        qdisc_bytes: 15_140,
    };

    #[test]
    fn the_controller_adds_distance_and_change() {
        // 0.3125 x (40 - 20) ms + 3.125 x 40 ms = 0.00625 + 0.125; then 0.3125 x 20 ms = 0.00625 more;
        // then at 20 ms: 3.125 x -20 ms = -0.0625.
        let mut controller = Controller::new(Control::PI2);
        for (millis, p) in [
            (40, 0.131_25),
            (40, 0.1375),
            (20, 0.075),
            (0, 0.006_25),
            (0, 0.0),
        ] {
            controller.update(Duration::from_millis(millis));
            assert!(
                (controller.p() - p).abs() < 1e-12,
                "{millis} ms: {}",
                controller.p()
            );
        }
    }

    #[test]
    fn classic_traffic_is_hit_with_the_square_and_scalable_with_twice_p() {
        // p' = 0.3 by one update: 0.3125 x (d - 20 ms) + 3.125 d = 0.3 at d = 89.0909 ms.
        let mut pi2 = Pi2::new(Config {
            ecn: true,
            ..Config::new(1514)
        });
        pi2.controller.update(Duration::from_nanos(89_090_909));
        assert!((pi2.controller.p() - 0.3).abs() < 1e-6);
        let mut env = Environment::new(11);
        for (ecn, hit, expected) in [
            (Ecn::NotEct, Verdict::DROP, 0.09),
            (Ecn::Ect0, Verdict::Mark, 0.09),
            (Ecn::Ect1, Verdict::Mark, 0.6),
        ] {
            let packet = Datagram {
                ecn,
                ..Datagram::new(0, 1514)
            };
            let hits = (0..100_000)
                .filter(|_| pi2.on_enqueue(&packet, LONG, Time::ZERO, &mut env) == hit)
                .count();
            let share = hits as f64 / 100_000.0;
            assert!((share - expected).abs() < 0.005, "{ecn:?}: {share}");
        }
    }
}
