//! The settings of a link that is a Wi-Fi cell, besides those of all links.

pub use sojourn_wifi::phy::{Guard, Standard, Width};
pub use sojourn_wifi::queues::mac80211::Amsdu;
pub use sojourn_wifi::{Fading, RateControl};

/// A cell. The link leads from the access point to the stations.
#[derive(Clone, PartialEq, Debug)]
pub struct Wifi {
    /// The 802.11 standard.
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
    /// The version of Linux whose rules mac80211's queues follow.
    pub kernel: (u32, u32),
    /// Whether stations share airtime, where the kernel can; otherwise they take turns.
    pub airtime_fairness: bool,
    /// What limits the frames into which mac80211's queues merge packets; `None`: each frame has one packet.
    pub amsdu: Option<Amsdu>,
    /// The stations, in the order of [`crate::model::Nodes::to`].
    pub stations: Vec<Station>,
}

/// Where the packets of a cell's nodes wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Queueing {
    /// In queues per station, as in Linux's mac80211. The arm's discipline takes the place of mac80211's FQ-CoDel.
    Mac80211,
    /// In the arm's discipline, above a device ring. The discipline does not see the packets in the ring.
    Qdisc,
}

/// A station of a cell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Station {
    /// How the station and the access point choose the modes of the frames that they send to each other.
    pub rate: RateControl,
    /// The signal-to-noise ratio in dB; `None`: only collisions lose frames.
    pub snr_db: Option<f64>,
    /// How the signal fades.
    pub fading: Option<Fading>,
}
