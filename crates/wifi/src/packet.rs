//! A packet that a Wi-Fi cell can carry.

/// A packet that knows its station.
pub trait Packet: sojourn_path::Packet {
    /// The station that it goes to or comes from, as last set.
    fn station(&self) -> u16;

    /// Sets its station.
    fn set_station(&mut self, station: u16);
}
