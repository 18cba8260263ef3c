//! First in, first out, and what does not fit is dropped: `pfifo` (limit in packets) and `bfifo` (in bytes).
//!
//! The queue that everything else is compared with. Source: tc-pfifo(8).

use alloc::boxed::Box;

use crate::aqm::Aqm;
use crate::catalogue::{Discipline, SettingError, Settings};
use crate::packet::Packet;
use crate::qdisc::{Limit, Qdisc};
use crate::single::Single;

/// No management at all.
pub struct DropTail;

impl Aqm for DropTail {}

/// `pfifo`.
pub fn pfifo<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "pfifo",
        summary: "drop-tail FIFO, limit in packets",
        source: "tc-pfifo(8)",
        keys: &[],
        build: |settings| build(settings, Limit::Packets(1000)),
    }
}

/// `bfifo`.
pub fn bfifo<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "bfifo",
        summary: "drop-tail FIFO, limit in bytes",
        source: "tc-bfifo(8)",
        keys: &[],
        build: |settings| build(settings, Limit::Bytes(1000 * u64::from(settings.mtu))),
    }
}

fn build<P: Packet + Send + 'static>(
    settings: &Settings,
    default: Limit,
) -> Result<Box<dyn Qdisc<P> + Send>, SettingError> {
    Ok(Box::new(Single::new(
        DropTail,
        settings.limit.unwrap_or(default),
    )))
}
