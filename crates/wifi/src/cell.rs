//! The settings of a cell and its stations.

use alloc::vec::Vec;

use crate::access::{AccessSet, PriorityMap, default_set};
use crate::aggregate::{Aggregation, Framing};
use crate::channel::Fading;
use crate::phy::{Band, Dsss, Guard, Ht, Mode, Ofdm, Preamble, Standard, Timing, Vht, Width};
use crate::queues::Queueing;
use crate::rate_control::RateControl;

/// A cell: an access point and its stations. [`Cell::new`] holds the defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// The 802.11 standard.
    pub standard: Standard,
    /// Slot, SIFS and what follows from them.
    pub timing: Timing,
    /// The access point's contention parameters.
    pub access_point: AccessSet,
    /// The stations' contention parameters.
    pub stations: AccessSet,
    /// How much goes into one transmission.
    pub aggregation: Aggregation,
    /// What an MPDU adds to its packets.
    pub framing: Framing,
    /// How code points map to categories; `None` without QoS, where all is best effort.
    pub priorities: Option<PriorityMap>,
    /// What protects a transmission.
    pub protection: Protection,
    /// Times a frame is sent before it is dropped (dot11ShortRetryLimit).
    pub retry_limit: u8,
    /// The same for frames under Block Ack, which are retransmitted one by one (ath9k: 30).
    pub aggregate_retry_limit: u8,
    /// Seed of all random streams.
    pub seed: u64,
}

/// Protection: the control frames before a transmission that make the others defer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// RTS and CTS before PSDUs longer than so many bytes (dot11RTSThreshold); `u32::MAX`: never.
    RtsAbove(u32),
    /// A CTS-to-self in this mode, which 802.11b stations understand (§10.27.1).
    CtsToSelf(Mode),
}

impl Cell {
    /// A cell without older stations, in the usual band of its standard.
    pub fn new(standard: Standard) -> Self {
        Self::in_band(standard, standard.usual_band())
    }

    /// A cell without older stations.
    pub fn in_band(standard: Standard, band: Band) -> Self {
        let timing = Timing::new(standard, band);
        Self {
            standard,
            timing,
            access_point: default_set(standard, &timing, true),
            stations: default_set(standard, &timing, false),
            aggregation: match standard {
                Standard::N => Aggregation::ath9k(),
                _ => Aggregation::most(standard),
            },
            framing: Framing {
                link_header: 14,
                qos: standard.has_qos(),
                ccmp: standard.has_qos(),
            },
            priorities: standard.has_qos().then_some(PriorityMap::Rfc8325),
            protection: Protection::RtsAbove(u32::MAX),
            retry_limit: 7,
            aggregate_retry_limit: 30,
            seed: 0,
        }
    }

    /// The same cell with 802.11b stations in it (§10.27): it has their slot, and a CTS-to-self at 11 Mbit/s before every
    /// frame.
    pub fn beside_802_11b(self) -> Self {
        let timing = self.timing.beside_802_11b();
        Self {
            timing,
            access_point: default_set(self.standard, &timing, true),
            stations: default_set(self.standard, &timing, false),
            protection: Protection::CtsToSelf(Mode::Dsss(Dsss::R11, Preamble::Long)),
            ..self
        }
    }
}

/// A station, and the channel between it and the access point.
pub struct Station<P> {
    /// The modes that both support, at least one.
    pub modes: Vec<Mode>,
    /// How both choose among these modes.
    pub rate_control: RateControl,
    /// The signal-to-noise ratio in dB; `None`: frames are lost only by collisions.
    pub snr_db: Option<f64>,
    /// How the signal fades.
    pub fading: Option<Fading>,
    /// The station's own queues.
    pub queueing: Queueing<P>,
}

/// The modes of a standard, up to a width and a number of streams, slowest first. 802.11b and g use one stream at 20 MHz.
pub fn modes(standard: Standard, width: Width, streams: u8, guard: Guard) -> Vec<Mode> {
    let every_stream = 1..=streams.clamp(1, 4);
    let mut modes: Vec<Mode> = match standard {
        Standard::B => Dsss::ALL
            .map(|rate| Mode::Dsss(rate, Preamble::Long))
            .into(),
        Standard::G => Ofdm::ALL.map(Mode::Ofdm).into(),
        Standard::N => every_stream
            .flat_map(|streams| (0..8).filter_map(move |mcs| Ht::new(mcs, streams, width, guard)))
            .map(Mode::Ht)
            .collect(),
        Standard::Ac => every_stream
            .flat_map(|streams| (0..10).filter_map(move |mcs| Vht::new(mcs, streams, width, guard)))
            .map(Mode::Vht)
            .collect(),
    };
    modes.sort_by_key(|mode| mode.rate());
    modes
}
