//! The durations of an exchange: protection, data and answer.

use sojourn_units::Duration;

use crate::cell::{Cell, Protection};
use crate::frames;
use crate::phy::Mode;

/// What a transmission carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Payload {
    /// One frame, which an ACK answers.
    Frame,
    /// An aggregate, which a BlockAck answers.
    Aggregate,
    /// A BlockAckReq.
    BlockAckRequest,
}

impl Payload {
    /// So many frames.
    pub(crate) const fn of(frames: usize) -> Self {
        if frames > 1 {
            Self::Aggregate
        } else {
            Self::Frame
        }
    }
}

/// The durations of an exchange. A SIFS lies between two frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// RTS and CTS, or a CTS-to-self, with the SIFS after each.
    pub protection: Duration,
    /// The RTS alone, which is all that a collision can hit; `None` without RTS.
    pub rts: Option<Duration>,
    /// The frames themselves.
    pub data: Duration,
    /// The SIFS and the answer.
    pub answer: Duration,
    /// The mode of the answer, and its bytes.
    pub answer_frame: (Mode, u32),
}

impl Plan {
    pub(crate) fn new(cell: &Cell, mode: Mode, psdu_bytes: u32, payload: Payload) -> Self {
        let timing = &cell.timing;
        let control = mode.response();
        let answer_bytes = match payload {
            Payload::Frame => frames::ACK,
            Payload::Aggregate | Payload::BlockAckRequest => frames::BLOCK_ACK,
        };
        let (protection, rts) = match cell.protection {
            Protection::RtsAbove(limit) if psdu_bytes > limit => {
                let rts = timing.airtime(control, frames::RTS);
                let cts = timing.airtime(control, frames::CTS);
                (rts + timing.sifs + cts + timing.sifs, Some(rts))
            }
            Protection::RtsAbove(_) => (Duration::ZERO, None),
            Protection::CtsToSelf(mode) => (timing.airtime(mode, frames::CTS) + timing.sifs, None),
        };
        Self {
            protection,
            rts,
            data: timing.airtime(mode, psdu_bytes),
            answer: timing.sifs + timing.airtime(control, answer_bytes),
            answer_frame: (control, answer_bytes),
        }
    }

    /// How long the sender sends before it expects an answer: the RTS alone, or else the protection and the data. A collision
    /// lasts so long.
    pub(crate) fn exposed(&self) -> Duration {
        self.rts.unwrap_or(self.protection + self.data)
    }

    /// The whole exchange.
    pub(crate) fn whole(&self) -> Duration {
        self.protection + self.data + self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phy::{Dsss, Ofdm, Preamble, Standard};

    #[test]
    fn an_exchange_of_802_11g_by_hand() {
        // 1536 bytes at 54 Mbit/s: 248 + 6; SIFS 10; ACK at 24 Mbit/s: 28 + 6.
        let cell = Cell::new(Standard::G);
        let mode = Mode::Ofdm(Ofdm::R54);
        let plan = Plan::new(&cell, mode, 1536, Payload::Frame);
        assert_eq!(plan.whole().as_micros(), 254 + 10 + 34);
        // With RTS and CTS at 24 Mbit/s: 28 + 6, SIFS, 28 + 6, SIFS.
        let with_rts = Cell {
            protection: Protection::RtsAbove(1000),
            ..cell.clone()
        };
        let plan = Plan::new(&with_rts, mode, 1536, Payload::Frame);
        assert_eq!(plan.exposed().as_micros(), 34);
        assert_eq!(plan.whole().as_micros(), 34 + 10 + 34 + 10 + 254 + 10 + 34);
        assert_eq!(Plan::new(&with_rts, mode, 1000, Payload::Frame).rts, None);
        // Beside 802.11b stations, a CTS-to-self at 11 Mbit/s: 192 + 11 (112 bits at 11, rounded up), SIFS.
        let plan = Plan::new(&cell.beside_802_11b(), mode, 1536, Payload::Frame);
        assert_eq!(plan.whole().as_micros(), 203 + 10 + 254 + 10 + 34);
    }

    #[test]
    fn an_exchange_of_802_11b_by_hand() {
        // 1536 bytes at 11 Mbit/s: 192 + 1118; SIFS 10; ACK at 2 Mbit/s: 192 + 56.
        let cell = Cell::new(Standard::B);
        let mode = Mode::Dsss(Dsss::R11, Preamble::Long);
        let plan = Plan::new(&cell, mode, 1536, Payload::Frame);
        assert_eq!(plan.whole().as_micros(), 1310 + 10 + 248);
    }
}
