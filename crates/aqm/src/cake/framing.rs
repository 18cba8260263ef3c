//! The size of a packet on a link whose framing differs from the framing included in its length (tc-cake(8), "Overhead
//! compensation").

use crate::choice;

/// Payload and size of an ATM cell, in bytes (ITU-T I.361).
const CELL: (u32, u32) = (48, 53);
/// PTM sends 65 bytes per 64 (IEEE 802.3 clause 61, 64/65-octet encapsulation).
const PTM_BLOCK: u32 = 64;

/// The framing of the link that the shaper emulates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Bytes that the link adds to an IP packet, replacing the link header included in the packet's length. `None` to
    /// count packets as they are.
    pub overhead: Option<u32>,
    /// The link header included in the packet's length, in bytes.
    pub header: u32,
    /// The minimum size of a packet on the link, in bytes.
    pub mpu: u32,
    /// The cells into which the packet is split.
    pub cells: Cells,
}

choice! {
    /// How a link splits packets into cells.
    pub enum Cells {
        /// Not at all.
        None = "noatm",
        /// ATM cells: 53 bytes for each 48, the last one padded.
        Atm = "atm",
        /// PTM: one more byte for each 64 or part of them, slightly more than the exact share.
        Ptm = "ptm",
    }
}

impl Framing {
    /// Packets as they are.
    pub const NONE: Self = Self {
        overhead: None,
        header: 0,
        mpu: 0,
        cells: Cells::None,
    };

    /// Bytes on the link for a packet whose length is `bytes`.
    pub fn bytes_on_link(&self, bytes: u32) -> u32 {
        let framed = match self.overhead {
            Some(overhead) => bytes.saturating_sub(self.header).saturating_add(overhead),
            None => bytes,
        };
        let framed = framed.max(self.mpu);
        match self.cells {
            Cells::None => framed,
            Cells::Atm => framed.div_ceil(CELL.0) * CELL.1,
            Cells::Ptm => framed + framed.div_ceil(PTM_BLOCK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: Framing = Framing {
        overhead: None,
        header: 14,
        mpu: 0,
        cells: Cells::None,
    };

    #[test]
    fn overhead_replaces_the_header_and_counts_before_the_cells() {
        let pppoe_vcmux = Framing {
            overhead: Some(32),
            cells: Cells::Atm,
            ..RAW
        };
        for (framing, bytes, expected) in [
            (RAW, 1514, 1514),
            // 1500 + 18.
            (
                Framing {
                    overhead: Some(18),
                    ..RAW
                },
                1514,
                1518,
            ),
            // 40 + 18 = 58, at least 64.
            (
                Framing {
                    overhead: Some(18),
                    mpu: 64,
                    ..RAW
                },
                54,
                64,
            ),
            // 1500 + 32 = 1532: 32 cells (1536).
            (pppoe_vcmux, 1514, 32 * 53),
            // 40 + 32 = 72: 2 cells.
            (pppoe_vcmux, 54, 106),
            // 1500 + 22 = 1522: 24 blocks of 64 (1536).
            (
                Framing {
                    overhead: Some(22),
                    cells: Cells::Ptm,
                    ..RAW
                },
                1514,
                1546,
            ),
        ] {
            assert_eq!(
                framing.bytes_on_link(bytes),
                expected,
                "{framing:?} {bytes}"
            );
        }
    }
}
