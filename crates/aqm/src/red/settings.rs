//! RED's keys and their conversion to its parameters: defaults, tc's derivations, checks.

use alloc::format;
use alloc::vec::Vec;

use sojourn_units::Rate;

use super::{Config, Unit, Variant, linux};
use crate::key::{Key, SettingError};
use crate::limit::Limit;
use crate::parameters;
use crate::parameters::Parameters as _;
use crate::settings::Settings;

parameters! {
    /// The keys of RED except `variant`, shared by sfq_red, ared and choke. A key that depends on others is `None`
    /// until it is known.
    pub(crate) struct Parameters {
        /// average queue below which nothing is dropped
        pub(crate) min: Option<Limit> = "5 packets; linux: max / 3",
        /// average queue at which the drop probability reaches `probability`
        pub(crate) max: Option<Limit> = "3 x min; linux without min: limit / 4",
        /// drop probability at max (max_p)
        probability: f64 as Probability,
        /// weight of the current queue in the average (w_q)
        pub(crate) weight: Option<f64> as Probability = "0.002; linux: from burst",
        /// packets of a burst that must pass; tc derives the weight from it
        pub(crate) burst: Option<u64> as Packets = "linux: (2 x min + max) / (3 x avpkt)",
        /// mean packet size
        pub(crate) avpkt: u64 as Bytes = "a full frame; linux: 1000 B",
        /// rate that converts idle time to packets
        pub(crate) bandwidth: Rate = "the link's rate; linux: 10 Mbit/s",
        /// above max, raise the probability to 1 at twice max instead of at once; never in linux
        gentle: bool,
        /// space drops by at least 1/p packets (ns-2)
        wait: bool,
        /// scale the probability by packet size / avpkt
        bytemode: bool,
        /// drop ECN-capable packets too where the average is too high for any packet to pass
        harddrop: bool,
        /// do not count CE-marked packets in the delay or queue length that drives drops
        ce_exclude: bool,
    }
}

parameters! {
    /// The variant key of RED without adaptation.
    pub(crate) struct Which {
        /// as published, or Linux's fixed point with tc's derived parameters
        pub(crate) variant: Variant,
    }
}

pub(crate) const WHICH: Which = Which {
    variant: Variant::Floyd,
};

impl Parameters {
    /// The defaults of a variant on a link of this rate, with frames of `mtu` bytes.
    const fn of(variant: Variant, rate: Rate, mtu: u32) -> Self {
        let (probability, avpkt, bandwidth, gentle) = match variant {
            Variant::Floyd => (0.1, mtu as u64, rate, true),
            Variant::Linux => (0.02, 1000, Rate::from_mbps(10), false),
        };
        Self {
            min: None,
            max: None,
            probability,
            weight: None,
            burst: None,
            avpkt,
            bandwidth,
            gentle,
            wait: false,
            bytemode: false,
            harddrop: false,
            ce_exclude: false,
        }
    }

    /// Reads the keys.
    pub(crate) fn read(settings: &Settings, variant: Variant) -> Result<Self, SettingError> {
        Self::of(variant, settings.rate, settings.mtu).given(settings)
    }
}

/// The keys except `variant`.
pub(crate) fn keys() -> Vec<Key> {
    let defaults = Variant::ALL.iter().map(|(word, variant)| {
        let defaults = Parameters::of(*variant, Rate::from_mbps(10), 0);
        (*word, defaults)
    });
    Parameters::keys_by_variant(&defaults.collect::<Vec<_>>())
}

/// The keys except `variant`, some with another default, in words.
pub(crate) fn keys_but(defaults: &[(&str, &'static str)]) -> Vec<Key> {
    let own = |key: Key| match defaults.iter().find(|(name, _)| *name == key.name) {
        Some((_, words)) => key.by_default(words),
        None => key,
    };
    keys().into_iter().map(own).collect()
}

/// A limit in bytes, counting packets as full frames of `mtu` bytes.
pub(crate) fn bytes(limit: Limit, mtu: u32) -> u64 {
    match limit {
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => packets.saturating_mul(mtu.into()),
    }
}

/// min and max with their unit. If only one is given, the other is three times or a third of it.
fn thresholds(
    given: &Parameters,
    variant: Variant,
    mtu: u32,
    limit: Limit,
) -> Result<(Unit, u64, u64), SettingError> {
    let linux = variant == Variant::Linux;
    let unit = match (given.min, given.max) {
        (Some(Limit::Packets(_)), Some(Limit::Bytes(_)))
        | (Some(Limit::Bytes(_)), Some(Limit::Packets(_)))
            if !linux =>
        {
            let message = "must be in the unit of min: both in packets, or both in bytes";
            return Err(SettingError::new("max", message));
        }
        (Some(Limit::Bytes(_)), _) | (_, Some(Limit::Bytes(_))) => Unit::Bytes,
        _ if linux => Unit::Bytes,
        _ => Unit::Packets,
    };
    let counted = |threshold| match unit {
        Unit::Bytes => bytes(threshold, mtu),
        Unit::Packets => bytes(threshold, mtu) / u64::from(mtu).max(1),
    };
    let (min, max) = match (given.min.map(counted), given.max.map(counted)) {
        (Some(min), Some(max)) => (min, max),
        (Some(min), None) => (min, min.saturating_mul(3)),
        (None, Some(max)) => (max / 3, max),
        (None, None) if linux => (bytes(limit, mtu) / 12, bytes(limit, mtu) / 4),
        (None, None) => (5, 15),
    };
    given.require_order(unit, min, max)?;
    Ok((unit, min, max))
}

/// RED for these settings; `limit` is the queue's limit.
pub(crate) fn config(
    settings: &Settings,
    variant: Variant,
    limit: Limit,
) -> Result<Config, SettingError> {
    let given = Parameters::read(settings, variant)?;
    given.config(settings, variant, limit)
}

impl Parameters {
    /// # Errors
    /// `min` is not below `max`.
    pub(crate) fn require_order(&self, unit: Unit, min: u64, max: u64) -> Result<(), SettingError> {
        if min < max {
            return Ok(());
        }
        let unit = match unit {
            Unit::Packets => "packets",
            Unit::Bytes => "B",
        };
        let (key, message) = match (self.min, self.max) {
            // The other one is a multiple of it.
            (Some(_), None) => ("min", format!("got {min} {unit}; must be above 0")),
            (None, Some(_)) => ("max", format!("got {max} {unit}; must be above 0")),
            (_, max_given) => (
                if max_given.is_some() { "max" } else { "min" },
                format!("got min {min} {unit} and max {max} {unit}; max must be above min"),
            ),
        };
        Err(SettingError::new(key, message))
    }

    /// RED for these keys; `limit` is the queue's limit.
    pub(crate) fn config(
        self,
        settings: &Settings,
        variant: Variant,
        limit: Limit,
    ) -> Result<Config, SettingError> {
        let (unit, min, max) = thresholds(&self, variant, settings.mtu, limit)?;
        self.config_between(settings, variant, unit, min, max)
    }

    /// RED for these keys with given thresholds. Records all values in use.
    pub(crate) fn config_between(
        self,
        settings: &Settings,
        variant: Variant,
        unit: Unit,
        min: u64,
        max: u64,
    ) -> Result<Config, SettingError> {
        let linux = variant == Variant::Linux;
        let avpkt = self.avpkt;
        if avpkt == 0 || avpkt > 1 << 20 {
            let message = format!("got \"{avpkt} B\"; must be from 1 B to 1 MiB");
            return Err(SettingError::new("avpkt", message));
        }
        if linux && max >= 1 << 31 {
            let message = format!("got {max}; must be below 2^31 with variant \"linux\"");
            return Err(SettingError::new("max", message));
        }
        for (key, given) in [
            ("gentle", self.gentle),
            ("wait", self.wait),
            ("bytemode", self.bytemode),
        ] {
            if linux && given {
                let message = "got true; Linux has no such mode: omit this or variant = \"linux\"";
                return Err(SettingError::new(key, message));
            }
        }
        let (threshold, in_bytes): (fn(u64) -> Limit, _) = match unit {
            Unit::Bytes => (Limit::Bytes, 1),
            Unit::Packets => (Limit::Packets, avpkt),
        };
        let (weight, burst) = match self.weight {
            Some(weight) => (weight, None),
            None if linux || self.burst.is_some() => {
                let (min, max) = (min.saturating_mul(in_bytes), max.saturating_mul(in_bytes));
                let default = min.saturating_mul(2).saturating_add(max) / (3 * avpkt);
                let burst = self.burst.unwrap_or(default);
                (weight_of_burst(burst, min, avpkt)?, Some(burst))
            }
            None => (0.002, None),
        };
        if weight <= 0.0 {
            let message = "got 0; must be above 0 and at most 1";
            return Err(SettingError::new("weight", message));
        }
        let used = Self {
            min: Some(threshold(min)),
            max: Some(threshold(max)),
            weight: Some(weight),
            burst,
            ..self
        };
        used.note(settings);
        Ok(Config {
            unit,
            min,
            max,
            max_p: self.probability,
            weight,
            gentle: self.gentle,
            wait: self.wait,
            bytemode: self.bytemode,
            avpkt: avpkt as u32,
            bandwidth: self.bandwidth,
            ecn: settings.ecn_or(false)?,
            harddrop: self.harddrop,
            ce_exclude: self.ce_exclude,
            variant,
        })
    }
}

/// The weight that tc derives from `burst`; `min` in bytes.
fn weight_of_burst(burst: u64, min: u64, avpkt: u64) -> Result<f64, SettingError> {
    linux::weight_log(min, burst, avpkt)
        .map(|log| libm::ldexp(1.0, -i32::from(log)))
        .ok_or_else(|| {
            let least = min.div_ceil(avpkt);
            let message = format!(
                "got {burst} packets; must be at least min / avpkt (here {least}) and at most 10^9"
            );
            SettingError::new("burst", message)
        })
}
