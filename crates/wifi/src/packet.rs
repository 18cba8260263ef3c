//! A packet that a Wi-Fi cell can carry.

/// A packet that knows its station.
pub trait Packet: sojourn_path::Packet {
    /// The number last set: the station that it goes to, or 0 for a packet from a station.
    fn station(&self) -> u16;

    /// Sets this number.
    fn set_station(&mut self, station: u16);
}

impl<T> Packet for sojourn_aqm::Datagram<T> {
    fn station(&self) -> u16 {
        self.station
    }
    fn set_station(&mut self, station: u16) {
        self.station = station;
    }
}
