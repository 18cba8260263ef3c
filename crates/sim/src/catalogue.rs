//! The algorithms that experiments can name.

use sojourn_tcp::cc;

use crate::packet::SimPacket;

/// The algorithms that experiments can name: the built-in ones, and others that a program adds.
pub struct Catalogue {
    /// The queue disciplines.
    pub disciplines: sojourn_aqm::Catalogue<SimPacket>,
    /// The congestion controls.
    pub congestion_controls: cc::Catalogue,
}

/// The built-in algorithms by name.
pub fn catalogue() -> Catalogue {
    Catalogue {
        disciplines: sojourn_aqm::Catalogue::new(),
        congestion_controls: cc::Catalogue::new(),
    }
}
