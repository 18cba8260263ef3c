//! A run on the kernel's Wi-Fi queues: an access point, its stations, and datagrams to them.
//!
//! The kernel needs a radio for it, and the one of `validation/wifi_radio` logs what the queues decide. The log is the
//! run's result, with the queues' own counters beside it.

use serde::{Deserialize, Serialize};

/// What the agent is told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WifiJob {
    /// Of the kernel's random numbers.
    pub seed: u64,
    /// The kernel's number of the radio.
    #[serde(default)]
    pub wiphy: u32,
    /// The radio's name in debugfs, where its log is; `None`: it has no log.
    pub log: Option<String>,
    /// Files below the radio's folder in debugfs that are written before the run, with their content.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// The most packets in all queues; `None`: the kernel's.
    pub limit: Option<u32>,
    /// The most memory of all queues in bytes; `None`: the kernel's.
    pub memory_limit: Option<u32>,
    /// The stations' rates.
    pub stations: Vec<Rate>,
    /// The traffic.
    pub flows: Vec<Datagrams>,
    /// Until when the queues are watched.
    pub duration_ns: u64,
}

/// The only rate of a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// An index of 802.11n: 0 to 7 with one stream, to 15 with two.
    Mcs(u8),
    /// A legacy rate in units of 500 kbit/s.
    Legacy(u8),
}

/// Datagrams to a station: some at once, again and again.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    /// Index of the station.
    pub station: usize,
    /// Their length with the headers of IP and UDP, at least 32 bytes.
    pub bytes: usize,
    /// How many at once.
    #[serde(default = "one")]
    pub burst: u32,
    /// From one time to the next.
    pub every_ns: u64,
    /// The first time.
    #[serde(default)]
    pub start_ns: u64,
    /// When no more are sent.
    pub stop_ns: u64,
    /// Whether they are ECN-capable.
    #[serde(default)]
    pub ecn: bool,
}

const fn one() -> u32 {
    1
}

/// The figures of a run beside the log.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WifiFigures {
    /// The kernel's release.
    pub kernel: String,
    /// Datagrams for which a socket had no room.
    pub refused: u64,
    /// Records for which the log had no room.
    pub lost: u64,
    /// Counters of all queues of the radio (debugfs: aqm).
    pub radio: String,
    /// Counters of each station's queues (debugfs: aqm, airtime).
    pub stations: Vec<(String, String)>,
}
