//! The disciplines by name: those of this crate, and others that a program adds.

use alloc::vec::Vec;

use crate::discipline::Discipline;
use crate::packet::Packet;
use crate::{
    ared, blue, cake, choke, cobalt, codel, docsis_pie, dualpi2, fifo, fq_codel, fq_pie, hhf,
    madpie, paced_fq, pfifo_fast, pi2, pie, policer, policy, red, sfb, sfq, sfq_aqm,
};

/// The disciplines known by name: those of this crate, and others added by [`Catalogue::add`].
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
                paced_fq::fq(),
                fq_codel::fq_codel(),
                fq_codel::fq_nocodel(),
                fq_pie::fq_pie(),
                hhf::hhf(),
                sfq::sfq(),
                sfq_aqm::sfq_red(),
                sfq_aqm::sfq_ared(),
                sfq_aqm::sfq_pie(),
                sfq_aqm::sfq_madpie(),
                cobalt::cobalt(),
                cake::cake(),
                policer::policer(),
                policy::policy(),
            ]),
        }
    }

    /// Adds a discipline. It replaces one of the same name.
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

    /// All of them, in the order in which they were added; pages and `sojourn list` use it.
    pub fn iter(&self) -> impl Iterator<Item = &Discipline<P>> {
        self.disciplines.iter()
    }
}

impl<P: Packet + Send + 'static> Default for Catalogue<P> {
    fn default() -> Self {
        Self::new()
    }
}
