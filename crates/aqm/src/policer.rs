//! A policer: a token bucket that drops what finds it empty, and never delays.
//!
//! Source: tc-police(8), and RFC 2697 of which it is the meter of one rate without an excess burst. A packet passes if the
//! bucket holds its bytes, and is dropped otherwise; a packet that is dropped takes no tokens. What passes is in a FIFO, which
//! is empty where the link is faster than the policer.

use alloc::boxed::Box;
use alloc::format;

use sojourn_units::{Duration, Rate, Time};

use crate::aqm::{Algorithm, Aqm, Backlog};
use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::key::SettingError;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters;
use crate::parameters::Parameters;
use crate::settings::Settings;
use crate::single::Single;
use crate::verdict::Verdict;

parameters! {
    /// The parameters of a policer.
    pub struct Config {
        /// rate at which the bucket fills
        pub rate: Rate = "the link's rate",
        /// bytes that the bucket holds, at least those of the largest packet
        pub burst: u64 as Bytes = "100 ms of the rate",
    }
}

/// A policer. The bucket is kept as the time in which it becomes full: 1500 bytes at 12 Mbit/s are 1 ms.
pub struct Policer {
    config: Config,
    full_at: Time,
}

impl Policer {
    /// A policer with a full bucket.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            full_at: Time::ZERO,
        }
    }

    /// The time that the bucket needs from empty to full.
    fn depth(&self) -> Duration {
        self.config.rate.tx_time(self.config.burst)
    }
}

impl<P: Packet> Aqm<P> for Policer {
    fn on_enqueue(&mut self, packet: &P, _: Backlog, now: Time, _: &mut Environment<P>) -> Verdict {
        let takes = self.config.rate.tx_time(packet.bytes().into());
        let full_at = self.full_at.max(now).saturating_add(takes);
        // A large bucket at a low rate may need longer to fill than there is time.
        if full_at > now.saturating_add(self.depth()) {
            return Verdict::DROP;
        }
        self.full_at = full_at;
        Verdict::Pass
    }
}

impl Algorithm for Policer {
    fn change(&mut self, settings: &Settings, _: Limit) -> Result<(), SettingError> {
        self.config = config(settings)?;
        Ok(())
    }
}

fn config(settings: &Settings) -> Result<Config, SettingError> {
    let of = |rate: Rate| Config {
        rate,
        // tc-police(8) has no default; these hold a round trip of TCP.
        burst: rate
            .bytes_in(Duration::from_millis(100))
            .max(settings.mtu.into()),
    };
    let rate = of(settings.rate).given(settings)?.rate;
    let config = of(rate).given(settings)?;
    if config.burst < settings.mtu.into() {
        let message = format!(
            "must be at least a full frame (\"{} B\"), which is never let through otherwise",
            settings.mtu
        );
        return Err(SettingError::new("burst", message));
    }
    Ok(config)
}

/// `policer`.
pub fn policer<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "policer",
        summary: "token bucket that drops instead of delaying",
        source: "tc-police(8)",
        keys: Box::new(|| {
            Config {
                rate: Rate::from_mbps(10),
                burst: 125_000,
            }
            .keys()
        }),
        make: Box::new(|settings| {
            let limit = settings.limit_or(Limit::Packets(1000));
            Ok(Box::new(Single::new(
                Policer::new(config(settings)?),
                limit,
            )))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;

    /// 3000 bytes at 12 Mbit/s fill in 2 ms: two packets of 1500 bytes pass, a third is dropped, and takes no tokens; after
    /// 1 ms one passes.
    #[test]
    fn what_finds_the_bucket_empty_is_dropped_and_takes_no_tokens() {
        let mut policer = Policer::new(Config {
            rate: Rate::from_mbps(12),
            burst: 3000,
        });
        let mut env = Environment::new(1);
        let at = [0, 0, 0, 500, 1000, 1000, 2000].map(|us| {
            let packet = Datagram::new(0, 1500);
            let now = Time::from_micros(10_000 + us);
            !policer
                .on_enqueue(&packet, Backlog::default(), now, &mut env)
                .is_drop()
        });
        assert_eq!(at, [true, true, false, false, true, false, true]);
    }

    #[test]
    fn a_bucket_that_takes_longer_to_fill_than_there_is_time_lets_all_pass() {
        let mut policer = Policer::new(Config {
            rate: Rate::from_bps(1).unwrap(),
            burst: u64::MAX,
        });
        let verdict = policer.on_enqueue(
            &Datagram::new(0, 1500),
            Backlog::default(),
            Time::from_secs(1),
            &mut Environment::new(1),
        );
        assert!(!verdict.is_drop());
    }

    #[test]
    fn a_bucket_holds_a_full_frame() {
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        assert_eq!(config(&settings).map(|config| config.burst), Ok(125_000));
        settings.values.push((
            "rate".into(),
            sojourn_units::Value::Rate(Rate::from_mbps(1)),
        ));
        assert_eq!(config(&settings).map(|config| config.burst), Ok(12_500));
        settings
            .values
            .push(("burst".into(), sojourn_units::Value::Bytes(1513)));
        assert!(config(&settings).unwrap_err().message.contains("1514 B"));
    }
}
