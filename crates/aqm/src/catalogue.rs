//! Every discipline by name, with its keys, defaults and builder.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sojourn_units::Kind;

use crate::packet::Packet;
use crate::qdisc::Qdisc;
use crate::settings::Settings;
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
    /// Its default as one would write it; where it depends on other settings, in words. The code's own is told by
    /// [`Settings::in_use`].
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
