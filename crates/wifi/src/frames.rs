//! Bytes of frames (IEEE 802.11-2020 §9.3), from the MAC header to the FCS.

/// ACK (§9.3.1.4).
pub const ACK: u32 = 14;
/// RTS (§9.3.1.2).
pub const RTS: u32 = 20;
/// CTS (§9.3.1.3).
pub const CTS: u32 = 14;
/// BlockAck with the compressed bitmap of 64 bits (§9.3.1.8): header 16, control 2, starting sequence 2, bitmap 8, FCS 4.
pub const BLOCK_ACK: u32 = 32;
/// BlockAckReq (§9.3.1.7): header 16, control 2, starting sequence 2, FCS 4.
pub const BLOCK_ACK_REQUEST: u32 = 24;
/// What a data frame adds to its payload: header 24 and FCS 4 (§9.3.2).
pub const DATA: u32 = 24 + 4;
/// The same with the QoS control field.
pub const QOS_DATA: u32 = 26 + 4;
/// LLC and SNAP before an IP packet.
pub const LLC: u32 = 8;
/// Header and MIC of CCMP (§12.5.3.2).
pub const CCMP: u32 = 8 + 8;
/// Before each MPDU of an A-MPDU (§9.7.1).
pub const DELIMITER: u32 = 4;
/// Before each MSDU of an A-MSDU: destination, source, length (§9.3.2.2.2).
pub const AMSDU_SUBFRAME: u32 = 14;

/// Bytes padded to a multiple of four, as every subframe of an aggregate is but the last.
pub const fn padded(bytes: u32) -> u32 {
    bytes.saturating_add(3) & !3
}
