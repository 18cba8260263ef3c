//! Three FIFOs by type of service, served in strict order: Linux's default discipline of a link (tc-pfifo_fast(8),
//! tc-prio(8)).
//!
//! Departure from Linux since 4.16, unless `variant = "linux"`: the limit applies to the three bands together, as
//! before that version, and not to each.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use sojourn_units::Time;

use crate::discipline::Discipline;
use crate::environment::Environment;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::parameters::Parameters;
use crate::qdisc::Qdisc;
use crate::verdict::DropReason;
use crate::{choice, parameters};

/// The band for each of the four combinations of RFC 1349's bits "minimize delay" (the higher) and "maximize
/// throughput", from Linux's priomap and its classes best effort, bulk, interactive, and interactive bulk.
const BANDS: [usize; 4] = [1, 2, 0, 1];

choice! {
    /// The scope of the limit.
    pub enum Variant {
        /// All bands together.
        Shared = "shared",
        /// Each band (Linux since 4.16).
        Linux = "linux",
    }
}

parameters! {
    struct Config {
        /// the limit applies to all bands together, or to each as in Linux since 4.16
        variant: Variant,
    }
}

const DEFAULT: Config = Config {
    variant: Variant::Shared,
};

/// Three FIFOs in strict order of priority.
pub struct PfifoFast<P> {
    limit: Limit,
    variant: Variant,
    bands: [Band<P>; 3],
}

struct Band<P> {
    queue: VecDeque<P>,
    bytes: u64,
}

/// The band of a DiffServ code point. The two bits of RFC 1349 lie in its middle, so that expedited forwarding (46) is
/// in the middle band.
fn band_of(dscp: u8) -> usize {
    BANDS[usize::from(dscp >> 1 & 0b11)]
}

impl<P: Packet> PfifoFast<P> {
    /// Empty bands with this limit.
    pub fn new(limit: Limit, variant: Variant) -> Self {
        let bands = [(); 3].map(|()| Band {
            queue: VecDeque::new(),
            bytes: 0,
        });
        Self {
            limit,
            variant,
            bands,
        }
    }

    fn has_room(&self, band: usize, packet: &P) -> bool {
        let (packets, bytes) = match self.variant {
            Variant::Shared => (self.packets(), self.bytes()),
            Variant::Linux => {
                let band = &self.bands[band];
                (band.queue.len() as u64, band.bytes)
            }
        };
        self.limit.has_room(packets, bytes, packet.bytes())
    }
}

impl<P: Packet> Qdisc<P> for PfifoFast<P> {
    fn enqueue(&mut self, mut packet: P, now: Time, env: &mut Environment<P>) {
        packet.set_enqueued(now);
        let band = band_of(packet.dscp());
        if !self.has_room(band, &packet) {
            return env.drop(packet, DropReason::Overflow);
        }
        self.bands[band].bytes += u64::from(packet.bytes());
        self.bands[band].queue.push_back(packet);
    }

    fn dequeue(&mut self, _now: Time, _env: &mut Environment<P>) -> Option<P> {
        self.bands.iter_mut().find_map(|band| {
            let packet = band.queue.pop_front()?;
            band.bytes -= u64::from(packet.bytes());
            Some(packet)
        })
    }

    fn packets(&self) -> u64 {
        self.bands.iter().map(|band| band.queue.len() as u64).sum()
    }

    fn bytes(&self) -> u64 {
        self.bands.iter().map(|band| band.bytes).sum()
    }
}

/// `pfifo_fast`.
pub fn pfifo_fast<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "pfifo_fast",
        summary: "three drop-tail FIFOs by type of service, in strict order",
        source: "tc-pfifo_fast(8)",
        keys: Box::new(|| DEFAULT.keys()),
        make: Box::new(|settings| {
            let Config { variant } = DEFAULT.given(settings)?;
            let limit = settings.limit_or(Limit::Packets(1000));
            Ok(Box::new(PfifoFast::new(limit, variant)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;
    use crate::testing::{Driven, packet};

    fn with_dscp(dscp: u8, id: u64) -> Datagram<u64> {
        Datagram {
            dscp,
            ..packet(1, id)
        }
    }

    #[test]
    fn bands_go_by_the_bits_of_rfc_1349() {
        // The TOS byte is four times the code point: 0x10 minimizes delay, 0x08 maximizes throughput.
        for (tos, band) in [
            (0x00, 1),
            (0x10, 0),
            (0x08, 2),
            (0x18, 1),
            (0xb8, 1),
            (0xc0, 1),
        ] {
            assert_eq!(band_of(tos >> 2), band, "TOS {tos:#x}");
        }
    }

    #[test]
    fn the_first_band_that_holds_a_packet_is_served() {
        let mut queue = Driven::new(PfifoFast::new(Limit::Packets(10), Variant::Shared));
        for (dscp, id) in [(0x08 >> 2, 0), (0, 1), (0x10 >> 2, 2), (0, 3)] {
            queue.enqueue(with_dscp(dscp, id));
        }
        assert_eq!(queue.ids(4), [2, 1, 3, 0]);
    }

    #[test]
    fn the_limit_is_for_all_bands_or_for_each() {
        for (variant, kept) in [(Variant::Shared, 2), (Variant::Linux, 4)] {
            let mut queue = Driven::new(PfifoFast::new(Limit::Packets(2), variant));
            for id in 0..3 {
                queue.enqueue(with_dscp(0, id));
                queue.enqueue(with_dscp(0x10 >> 2, 10 + id));
            }
            assert_eq!(queue.qdisc.packets(), kept);
            assert_eq!(queue.qdisc.bytes(), 1000 * kept);
            assert_eq!(queue.dropped().len() as u64, 6 - kept);
        }
    }
}
