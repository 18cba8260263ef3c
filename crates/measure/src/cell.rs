//! The figures of a Wi-Fi cell besides those of its queues.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::distribution::Quantiles;

/// The figures of a cell.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    /// By station, in the order of the file. Serialises to a map.
    #[serde(serialize_with = "by_name", deserialize_with = "in_order")]
    pub stations: Vec<(String, Station)>,
    /// The other uses of the medium.
    pub medium: Medium,
}

/// A station's figures: both directions together, and each direction.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Station {
    /// Both directions.
    #[serde(flatten)]
    pub both: Exchanged,
    /// From the access point.
    pub down: Exchanged,
    /// To the access point.
    pub up: Exchanged,
}

/// The exchanges between a station and the access point.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Exchanged {
    /// Share of the time after the warm-up that its frames took, with their acknowledgements and with those that were
    /// received in error; collisions are left out.
    pub airtime_share: f64,
    /// Frames per transmission after the warm-up, the mean; `None` without transmissions.
    pub aggregate_frames: Option<f64>,
    /// Retransmissions on the air, over the whole run.
    pub retries: u64,
    /// IP packets that were received over the medium after the warm-up, headers included: what TCP sends again counts
    /// again.
    pub goodput_bps: f64,
    /// From a packet's arrival at its sender's queue until the receiver hands it up, for packets received after the
    /// warm-up: queueing, contention, aggregation, repetition and reordering.
    pub latency_ms: Quantiles,
    /// Packets that left their queue and were sent in vain as often as the retry limit allows, or were received too late to
    /// be handed up, over the whole run.
    pub lost_packets: u64,
}

/// The uses of the medium besides the stations' exchanges. All shares, those of the stations included, add up to one.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Medium {
    /// Share of the time after the warm-up in which nobody sent: interframe spaces, back-off, and nothing to send.
    pub idle_share: f64,
    /// Share of the time after the warm-up that collisions took; with the airtime of all stations the shares sum to 1.
    pub collision_share: f64,
    /// How often nodes collided, over the whole run.
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

fn in_order<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, Station)>, D::Error> {
    struct InOrder;

    impl<'de> Visitor<'de> for InOrder {
        type Value = Vec<(String, Station)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("stations by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut stations = Vec::new();
            while let Some(station) = map.next_entry()? {
                stations.push(station);
            }
            Ok(stations)
        }
    }

    from.deserialize_map(InOrder)
}
