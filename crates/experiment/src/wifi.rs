//! A link that is a cell of Wi-Fi: what makes it one beside what all links have.

pub use sojourn_wifi::phy::{Guard, Standard, Width};
pub use sojourn_wifi::{Fading, RateControl};

/// A cell: its access point is the node that the link leads from, its stations are those that it leads to.
#[derive(Clone, PartialEq, Debug)]
pub struct Wifi {
    /// Which 802.11.
    pub standard: Standard,
    /// Width of the channel.
    pub width: Width,
    /// The most spatial streams.
    pub streams: u8,
    /// Guard interval of the modes among which senders choose.
    pub guard: Guard,
    /// RTS and CTS go before frames longer than so many bytes; `None`: never.
    pub rts_above: Option<u32>,
    /// Where packets wait.
    pub queueing: Queueing,
    /// Rules of mac80211's queues: those of the Linux of this version.
    pub kernel: (u32, u32),
    /// The stations, in the order of [`crate::model::Nodes::to`].
    pub stations: Vec<Station>,
}

/// Where the packets of a cell's nodes wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queueing {
    /// In Linux's mac80211, per station: in its FQ-CoDel, or in the discipline of the arm in place of that.
    Mac80211,
    /// In the discipline of the arm, above a device ring that it does not see into.
    Qdisc,
}

/// A station of a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Station {
    /// How it and the access point choose the modes of their frames to each other.
    pub rate: RateControl,
    /// The signal-to-noise ratio in dB; `None`: only collisions lose frames.
    pub snr_db: Option<f64>,
    /// How the signal fades.
    pub fading: Option<Fading>,
}
