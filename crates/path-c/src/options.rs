//! The options of a path.

use std::ffi::{CStr, c_char};

use ::sojourn_path::{Impair, Path, PathError, Way};

use crate::records::{Record, read};

/// The options of a path. Texts are as in an experiment file; NULL stands for a default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sojourn_options {
    /// sizeof(struct sojourn_options).
    pub size: usize,
    /// The link's rate: "20 Mbit/s". Required.
    pub rate: *const c_char,
    /// Propagation there and back: "40 ms". Required.
    pub rtt: *const c_char,
    /// The queue discipline: "fq_codel". By default drop-tail, 1000 packets.
    pub aqm: *const c_char,
    /// Its keys: "target=5 ms, ecn=true".
    pub keys: *const c_char,
    /// The rate of a link for packets up. By default they cross no link.
    pub up_rate: *const c_char,
    /// Its discipline, by default drop-tail.
    pub up_aqm: *const c_char,
    /// The keys of that.
    pub up_keys: *const c_char,
    /// Impairments of the propagation down: "loss=0.01, jitter=3 ms, duplicate=0.001, corrupt=0.001".
    pub impair: *const c_char,
    /// The same for the propagation up.
    pub up_impair: *const c_char,
    /// The seed of random numbers; 0 stands for 1.
    pub seed: u64,
}

// SAFETY: it is repr(C), its first field is its size, and all fields are integers or pointers, which any bytes are.
unsafe impl Record for sojourn_options {
    const LEAST: usize = 11 * 8;
}

/// A caller's text, with the name that messages call it.
struct Text<'a>(&'static str, Option<&'a str>);

impl<'a> Text<'a> {
    /// # Safety
    /// `text` is null, or a string with its end, which lasts as long as `'a`.
    unsafe fn new(name: &'static str, text: *const c_char) -> Result<Self, String> {
        if text.is_null() {
            return Ok(Self(name, None));
        }
        // SAFETY: it is not null, so the caller promises a string.
        let text = unsafe { CStr::from_ptr(text) };
        let text = text
            .to_str()
            .map_err(|_| format!("{name}: must be UTF-8"))?;
        Ok(Self(name, Some(text)))
    }

    fn required(&self) -> Result<&'a str, String> {
        self.1
            .ok_or_else(|| format!("{}: got NULL; is required", self.0))
    }

    /// Pairs of keys and values: `target=5 ms, ecn=true`.
    fn pairs(&self) -> Result<Vec<(&'a str, &'a str)>, String> {
        let parts = self.1.unwrap_or_default().split(',').map(str::trim);
        let pair = |part: &'a str| {
            let wrong = || format!("{}: got \"{part}\"; must be like \"target=5 ms\"", self.0);
            let (key, value) = part.split_once('=').ok_or_else(wrong)?;
            Ok((key.trim(), value.trim()))
        };
        parts.filter(|part| !part.is_empty()).map(pair).collect()
    }

    fn impair(&self) -> Result<Option<Impair>, String> {
        let mut impair = Impair::new();
        let pairs = self.pairs()?;
        for (key, value) in &pairs {
            let share = || {
                let share = value.parse::<f64>();
                share.map_err(|_| {
                    format!(
                        "{}: {key}: got \"{value}\"; must be a number from 0 to 1",
                        self.0
                    )
                })
            };
            impair = match *key {
                "loss" => impair.loss(share()?),
                "duplicate" => impair.duplicate(share()?),
                "corrupt" => impair.corrupt(share()?),
                "jitter" => impair.jitter(*value),
                _ => {
                    let known = "loss, jitter, duplicate, corrupt";
                    return Err(format!("{}: got \"{key}\"; must be one of {known}", self.0));
                }
            };
        }
        Ok((!pairs.is_empty()).then_some(impair))
    }
}

/// Builds the path of these options.
///
/// # Safety
/// `options` is null, or points to as many readable bytes as its first field says; its texts are null or end.
pub unsafe fn build(options: *const sojourn_options) -> Result<Path<u64>, String> {
    // SAFETY: the caller promises so.
    let options = unsafe { read(options) }?;
    // SAFETY: the caller promises so of every text.
    let texts = unsafe {
        [
            Text::new("rate", options.rate)?,
            Text::new("rtt", options.rtt)?,
            Text::new("aqm", options.aqm)?,
            Text::new("keys", options.keys)?,
            Text::new("up_rate", options.up_rate)?,
            Text::new("up_aqm", options.up_aqm)?,
            Text::new("up_keys", options.up_keys)?,
            Text::new("impair", options.impair)?,
            Text::new("up_impair", options.up_impair)?,
        ]
    };
    let [
        rate,
        rtt,
        aqm,
        keys,
        up_rate,
        up_aqm,
        up_keys,
        impair,
        up_impair,
    ] = &texts;
    let told = |error: PathError| error.to_string();
    let mut builder = Path::new(rate.required()?, rtt.required()?).map_err(told)?;
    match (aqm.1, keys.1) {
        (Some(aqm), _) => builder = builder.aqm(aqm, keys.pairs()?).map_err(told)?,
        (None, Some(_)) => return Err("keys: needs aqm".into()),
        (None, None) => {}
    }
    match (up_rate.1, up_aqm.1.or(up_keys.1)) {
        (Some(rate), _) => {
            let aqm = up_aqm.1.unwrap_or("pfifo");
            builder = builder.up_with(rate, aqm, up_keys.pairs()?).map_err(told)?;
        }
        (None, Some(_)) => return Err("up_aqm: needs up_rate".into()),
        (None, None) => {}
    }
    for (way, text) in [(Way::Down, impair), (Way::Up, up_impair)] {
        if let Some(impair) = text.impair()? {
            builder = builder
                .impair(way, impair)
                .map_err(|error| format!("{}: {error}", text.0))?;
        }
    }
    Ok(builder.seed(options.seed.max(1)).build())
}
