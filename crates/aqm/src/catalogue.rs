//! Every discipline by name, with its keys, defaults and builder.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sojourn_units::{Duration, Kind, Rate, Value};

use crate::packet::Packet;
use crate::qdisc::{Limit, Qdisc};
use crate::{
    ared, blue, cake, choke, cobalt, codel, docsis_pie, dualpi2, fifo, fq_codel, fq_pie, madpie,
    pfifo_fast, pi2, pie, red, sfb, sfq, sfq_aqm,
};

/// A key of a discipline, as `tc` or the defining document names it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Key {
    /// The name in an experiment file.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// Its default as one would write it; where it depends on other settings, in words.
    pub default: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
}

/// The keys of several lists as one, `N` in all: for a discipline that combines others.
pub(crate) const fn join_keys<const N: usize>(lists: &[&[Key]]) -> [Key; N] {
    let mut joined = [lists[0][0]; N];
    let (mut list, mut at) = (0, 0);
    while list < lists.len() {
        let mut key = 0;
        while key < lists[list].len() {
            joined[at] = lists[list][key];
            at += 1;
            key += 1;
        }
        list += 1;
    }
    assert!(at == N, "N is the number of keys");
    joined
}

/// The keys without the one called `name`, which is among them once; `N` are left.
pub(crate) const fn keys_without<const N: usize>(keys: &[Key], name: &str) -> [Key; N] {
    assert!(N + 1 == keys.len(), "one key is left out");
    let mut kept = [keys[0]; N];
    let (mut from, mut to) = (0, 0);
    while from < keys.len() {
        if !equal(keys[from].name.as_bytes(), name.as_bytes()) {
            kept[to] = keys[from];
            to += 1;
        }
        from += 1;
    }
    kept
}

/// Whether two strings are equal, at compile time.
const fn equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// What a discipline is built from.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The rate of the link it serves at the start, for those that need one (ARED).
    pub rate: Rate,
    /// A full frame on this link, in bytes.
    pub mtu: u32,
    /// The most it may hold; `None`: the discipline's own default.
    pub limit: Option<Limit>,
    /// The keys given, each once.
    pub values: Vec<(String, Value)>,
}

impl Settings {
    /// Settings with no key given.
    pub const fn new(rate: Rate, mtu: u32) -> Self {
        Self {
            rate,
            mtu,
            limit: None,
            values: Vec::new(),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.values
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
    }

    /// The span given for `name`, or `default`.
    pub fn duration(&self, name: &str, default: Duration) -> Duration {
        match self.get(name) {
            Some(Value::Duration(span)) => *span,
            _ => default,
        }
    }

    /// The number or probability given for `name`, or `default`.
    pub fn number(&self, name: &str, default: f64) -> f64 {
        match self.get(name) {
            Some(Value::Number(number)) => *number,
            _ => default,
        }
    }

    /// The whole number given for `name`, or `default`.
    pub fn count(&self, name: &str, default: u64) -> u64 {
        match self.get(name) {
            Some(Value::Count(count)) => *count,
            _ => default,
        }
    }

    /// The bytes given for `name`, with packets counted as full frames, or `default`.
    pub fn bytes(&self, name: &str, default: u64) -> u64 {
        match self.get(name) {
            Some(Value::Bytes(bytes)) => *bytes,
            Some(Value::Packets(packets)) => packets.saturating_mul(u64::from(self.mtu)),
            _ => default,
        }
    }

    /// The flag given for `name`, or `default`.
    pub fn flag(&self, name: &str, default: bool) -> bool {
        match self.get(name) {
            Some(Value::Flag(flag)) => *flag,
            _ => default,
        }
    }

    /// The word given for `name`, or `default`.
    pub fn word<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        match self.get(name) {
            Some(Value::Word(word)) => word,
            _ => default,
        }
    }

    /// The rate given for `name`, or `default`.
    pub fn rate(&self, name: &str, default: Rate) -> Rate {
        match self.get(name) {
            Some(Value::Rate(rate)) => *rate,
            _ => default,
        }
    }

    /// True if the file gave `name`.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// Settings that are each well formed but cannot go together or are out of range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingError {
    /// The key at fault.
    pub key: &'static str,
    /// What is wrong and what is accepted: `must be above 0 and below interval ("100 ms")`.
    pub message: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}

impl core::error::Error for SettingError {}

/// A discipline, or why its settings are refused.
pub type Built<P> = Result<Box<dyn Qdisc<P> + Send>, SettingError>;

/// The builder of a discipline.
pub type Build<P> = Box<dyn Fn(&Settings) -> Built<P> + Send + Sync>;

/// A discipline that can be asked for by name.
pub struct Discipline<P> {
    /// Its name, as in `tc` where `tc` has it.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The document that defines it.
    pub source: &'static str,
    /// Its keys besides `limit`.
    pub keys: &'static [Key],
    /// Makes one.
    pub build: Build<P>,
}

impl<P> Discipline<P> {
    /// The key called `name`, if the discipline has it.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// The disciplines known by name. Starts with ours; [`Catalogue::add`] takes any other.
pub struct Catalogue<P> {
    disciplines: Vec<Discipline<P>>,
}

impl<P: Packet + Send + 'static> Catalogue<P> {
    /// All disciplines of this crate.
    pub fn new() -> Self {
        Self {
            disciplines: Vec::from([
                fifo::pfifo(),
                fifo::bfifo(),
                fifo::pfifo_head_drop(),
                pfifo_fast::pfifo_fast(),
                red::red(),
                ared::ared(),
                blue::blue(),
                pie::pie(),
                docsis_pie::docsis_pie(),
                madpie::madpie(),
                codel::codel(),
                choke::choke(),
                sfb::sfb(),
                pi2::pi2(),
                dualpi2::dualpi2(),
                fq_codel::fq_codel(),
                fq_codel::fq_nocodel(),
                fq_pie::fq_pie(),
                sfq::sfq(),
                sfq_aqm::sfq_red(),
                sfq_aqm::sfq_ared(),
                sfq_aqm::sfq_pie(),
                sfq_aqm::sfq_madpie(),
                cobalt::cobalt(),
                cake::cake(),
            ]),
        }
    }

    /// Registers a discipline; one of the same name is replaced.
    pub fn add(&mut self, discipline: Discipline<P>) {
        self.disciplines
            .retain(|known| known.name != discipline.name);
        self.disciplines.push(discipline);
    }

    /// The discipline called `name`.
    pub fn get(&self, name: &str) -> Option<&Discipline<P>> {
        self.disciplines
            .iter()
            .find(|discipline| discipline.name == name)
    }

    /// All of them, in the order in which they are listed to users.
    pub fn iter(&self) -> impl Iterator<Item = &Discipline<P>> {
        self.disciplines.iter()
    }
}

impl<P: Packet + Send + 'static> Default for Catalogue<P> {
    fn default() -> Self {
        Self::new()
    }
}
