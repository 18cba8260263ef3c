//! The keys of DualPI2, and which of them go together.

use alloc::format;
use alloc::vec::Vec;

use super::{Config, Scheduler, Variant};
use crate::key::{Key, SettingError};
use crate::parameters::Parameters;
use crate::pi2::Control;
use crate::settings::Settings;

pub(super) fn keys() -> Vec<Key> {
    let defaults = || {
        Variant::ALL
            .iter()
            .map(|(word, variant)| (*word, Config::of(*variant)))
    };
    let control: Vec<_> = defaults()
        .map(|(word, config)| (word, config.control))
        .collect();
    let own: Vec<_> = defaults().collect();
    [
        Control::keys_by_variant(&control),
        Config::keys_by_variant(&own),
    ]
    .concat()
}

pub(super) fn config(settings: &Settings) -> Result<Config, SettingError> {
    let default = Config::of(settings.variant_or(Variant::Rfc9332)?);
    let asked = Config {
        c_protection: None,
        t_shift: None,
        min_qlen_step: None,
        ..default
    };
    let asked = asked.given(settings)?;
    let is_linux = default.variant == Variant::Linux;
    for (key, other) in [
        ("range", !asked.range.is_zero()),
        ("scheduler", asked.scheduler != Scheduler::Weighted),
        ("nqb", asked.nqb),
        ("queue_protection", asked.queue_protection),
    ] {
        if is_linux && other {
            let message = "has no effect with variant \"linux\", which has a step, a weighted round robin, and neither NQB \
                           nor queue protection";
            return Err(SettingError::new(key, message));
        }
    }
    for (key, given) in [
        ("critical_delay", asked.critical_delay.is_some()),
        ("critical_score", asked.critical_score.is_some()),
        ("aging", asked.aging.is_some()),
    ] {
        if given && !asked.queue_protection {
            let message = "has no effect without queue_protection = true";
            return Err(SettingError::new(key, message));
        }
    }
    if asked.min_qlen_step.is_some() && !is_linux {
        let message = "has no effect without variant = \"linux\"";
        return Err(SettingError::new("min_qlen_step", message));
    }
    let time_shifted = asked.scheduler == Scheduler::TimeShifted;
    for (key, given, used) in [
        ("c_protection", asked.c_protection.is_some(), !time_shifted),
        ("t_shift", asked.t_shift.is_some(), time_shifted),
    ] {
        if given && !used {
            let scheduler = if time_shifted { "ts_fifo" } else { "wrr" };
            let message = format!("has no effect with scheduler \"{scheduler}\"");
            return Err(SettingError::new(key, message));
        }
    }
    let config = Config {
        control: default.control.read(settings)?,
        c_protection: asked
            .c_protection
            .or(default.c_protection)
            .filter(|_| !time_shifted),
        t_shift: asked.t_shift.or(default.t_shift).filter(|_| time_shifted),
        min_qlen_step: asked.min_qlen_step.or(default.min_qlen_step),
        ..asked
    };
    let config = if config.queue_protection {
        let used = config.protection(settings.rate, settings.mtu);
        Config {
            critical_delay: Some(used.critical_delay),
            critical_score: Some(used.critical_score),
            aging: Some(used.aging),
            ..config
        }
    } else {
        config
    };
    config.note(settings);
    Ok(config)
}
