//! Speech codecs: their packets and their parameters in the E-model.

use serde::{Deserialize, Serialize};
use sojourn_units::Duration;

/// A speech codec of the E-model (ITU-T G.113 Appendix I).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the codecs'")]
pub enum Codec {
    G711,
    /// G.711 with packet loss concealment.
    G711Plc,
    G729a,
    G7231,
    GsmEfr,
}

impl Codec {
    /// Every codec.
    pub const ALL: [Self; 5] = [
        Self::G711,
        Self::G711Plc,
        Self::G729a,
        Self::G7231,
        Self::GsmEfr,
    ];

    const fn facts(self) -> CodecFacts {
        let (name, frame, ms, impairment, loss_robustness) = match self {
            Self::G711 => ("g711", 160, 20, 0.0, 4.3),
            Self::G711Plc => ("g711_plc", 160, 20, 0.0, 25.1),
            Self::G729a => ("g729a", 20, 20, 11.0, 19.0),
            Self::G7231 => ("g723_1", 24, 30, 15.0, 16.1),
            Self::GsmEfr => ("gsm_efr", 31, 20, 5.0, 10.0),
        };
        CodecFacts {
            name,
            frame,
            interval: Duration::from_millis(ms),
            impairment,
            loss_robustness,
        }
    }

    /// The name in experiment files.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }
    /// Payload bytes of a packet with its RTP header.
    pub const fn packet(self) -> u32 {
        self.facts().frame + 12
    }
    /// Time between packets.
    pub const fn interval(self) -> Duration {
        self.facts().interval
    }
    /// `Ie`: the reduction of the rating by the codec itself, without packet loss.
    pub const fn impairment(self) -> f64 {
        self.facts().impairment
    }
    /// `Bpl`: the packet loss in percent that takes half of the most that loss can take from the rating.
    pub const fn loss_robustness(self) -> f64 {
        self.facts().loss_robustness
    }
}

/// The parameters of a codec for the E-model and for its packets (ITU-T G.113 Appendix I; with silence suppression
/// where it gives values only for that).
struct CodecFacts {
    name: &'static str,
    /// Payload of a packet without RTP header.
    frame: u32,
    interval: Duration,
    impairment: f64,
    loss_robustness: f64,
}
