//! What a cell of Wi-Fi gives beside the figures of its queues.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// The figures of a cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// By station, in the order of the file. Serialises to a map.
    #[serde(serialize_with = "by_name")]
    pub stations: Vec<(String, Station)>,
    /// What the medium was used for beside that.
    pub medium: Medium,
}

/// A station's figures, both ways together and each way.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Station {
    /// Both ways.
    #[serde(flatten)]
    pub both: Exchanged,
    /// From the access point.
    pub down: Exchanged,
    /// To the access point.
    pub up: Exchanged,
}

/// What went over the medium between a station and the access point.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Exchanged {
    /// Share of the time after the warm-up that its frames and their acknowledgements took, those that were not understood
    /// included; collisions are left out.
    pub airtime_share: f64,
    /// Frames per transmission after the warm-up: the mean size of an aggregate; `None` without transmissions.
    pub aggregate_frames: Option<f64>,
    /// Transmissions that had been made before, whole run.
    pub retries: u64,
    /// IP packets that were received over the medium after the warm-up, in bits per second, their headers included.
    pub goodput_bps: f64,
    /// Packets that left their queue and were sent in vain as often as the retry limit allows, or came too late; whole run.
    pub lost_packets: u64,
}

/// What the medium was used for beside the stations' exchanges. All shares, those of the stations included, sum to one.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Medium {
    /// Share of the time after the warm-up in which nobody sent: interframe spaces, back-off, and nothing to send.
    pub idle_share: f64,
    /// Share of the time after the warm-up that collisions took.
    pub collision_share: f64,
    /// How often nodes collided, whole run.
    pub collisions: u64,
}

fn by_name<S: Serializer>(
    stations: &[(String, Station)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(stations.len()))?;
    for (name, station) in stations {
        map.serialize_entry(name, station)?;
    }
    map.end()
}
