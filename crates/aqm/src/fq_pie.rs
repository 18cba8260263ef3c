//! FQ-PIE: flow queueing with PIE on every queue (tc-fq_pie(8), draft-tahiliani-tsvwg-fq-pie).
//!
//! It combines [`crate::fq`] and [`crate::pie`]. Unlike FQ-CoDel it drops the arriving packet when there is no room.
//! With `variant = "linux"` the PIEs use Linux's arithmetic, and a new queue found empty leaves the lists if the old
//! list is empty.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::discipline::Discipline;
use crate::fq::{self, Fair, Overflow};
use crate::key::Key;
use crate::packet::Packet;
use crate::parameters;
use crate::parameters::Parameters;
use crate::pie::{self, Pie, Variant};

parameters! {
    /// tc's name for the key that `pie` calls `ecn_threshold`.
    struct EcnProb {
        /// mark ECN-capable packets up to this probability, drop them above it
        ecn_prob: f64 as Probability,
    }
}

impl EcnProb {
    const fn of(pie: &pie::Config) -> Self {
        Self {
            ecn_prob: pie.ecn_threshold,
        }
    }
}

fn keys() -> Vec<Key> {
    let defaults = pie::defaults(Variant::Rfc8033);
    let mut pie = pie::Config::keys_by_variant(&defaults);
    pie.retain(|key| key.name != "ecn_threshold");
    let own = defaults.iter().map(|(word, pie)| (*word, EcnProb::of(pie)));
    let own = EcnProb::keys_by_variant(&own.collect::<Vec<_>>());
    [fq::keys(), pie, own].concat()
}

/// `fq_pie`.
pub fn fq_pie<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "fq_pie",
        summary: "flow queueing with PIE on every queue",
        source: "RFC 8033, RFC 8290; tc-fq_pie(8)",
        keys: Box::new(keys),
        make: Box::new(|settings| {
            let variant = match settings.variant_or(Variant::Rfc8033)? {
                Variant::Linux => fq::Variant::Linux,
                Variant::Rfc8033 | Variant::Draft2013 => fq::Variant::Rfc8290,
            };
            let fair = fq::config(settings, Overflow::Arrival, variant)?;
            let pie = pie::config(settings, Variant::Rfc8033, fair.limit)?;
            let EcnProb { ecn_prob } = EcnProb::of(&pie).given(settings)?;
            let pie = pie::Config {
                ecn_threshold: ecn_prob,
                ..pie
            };
            Ok(Box::new(Fair::new(fair, || Pie::new(pie))))
        }),
    }
}

#[cfg(test)]
mod tests {
    use sojourn_units::{Rate, Time, Value};

    use super::*;
    use crate::Datagram;
    use crate::limit::Limit;
    use crate::packet::Ecn;
    use crate::qdisc::Qdisc;
    use crate::settings::Settings;
    use crate::testing::{Driven, packet};
    use crate::verdict::DropReason;

    fn built(settings: &Settings) -> Driven<dyn Qdisc<Datagram<u64>> + Send> {
        Driven::boxed(fq_pie().build(settings).expect("good settings"))
    }

    fn settings() -> Settings {
        Settings::new(Rate::from_mbps(1), 1514)
    }

    /// For 10 s, flow 1 sends two packets per 10 ms and flow 2 one per 40 ms; one leaves per 10 ms. Timers run when
    /// due. Returns the numbers of the dropped packets; those of flow 2 start at 1 000 000.
    fn overload(
        queue: &mut Driven<dyn Qdisc<Datagram<u64>> + Send>,
        ecn: Ecn,
    ) -> Vec<(u64, DropReason)> {
        for step in 0..1000 {
            let due = Time::from_millis(10 * step);
            while let Some(timer) = queue.qdisc.next_timer().filter(|&timer| timer <= due) {
                queue.qdisc.on_timer(timer, &mut queue.env);
            }
            queue.now = due;
            queue.enqueue(packet(1, 2 * step).with_ecn(ecn));
            queue.enqueue(packet(1, 2 * step + 1).with_ecn(ecn));
            if step % 4 == 0 {
                queue.enqueue(packet(2, 1_000_000 + step).with_ecn(ecn));
            }
            queue.dequeue();
        }
        queue.dropped()
    }

    #[test]
    fn each_queue_has_a_pie_of_its_own() {
        for variant in ["rfc8033", "linux", "2013"] {
            let mut settings = settings();
            settings
                .values
                .push(("variant".into(), Value::Word(variant.into())));
            let mut queue = built(&settings);
            let dropped = overload(&mut queue, Ecn::NotEct);
            assert!(dropped.len() > 100, "{variant}");
            assert!(
                dropped
                    .iter()
                    .all(|&(id, why)| id < 1_000_000 && why == DropReason::Aqm),
                "{variant}"
            );
        }
    }

    #[test]
    fn ecn_capable_packets_are_marked_up_to_ecn_prob() {
        let mut marks = Vec::new();
        for ecn_prob in [0.01, 1.0] {
            let mut settings = settings();
            settings.values.push(("ecn".into(), Value::Flag(true)));
            settings
                .values
                .push(("ecn_prob".into(), Value::Number(ecn_prob)));
            let mut queue = built(&settings);
            let dropped = overload(&mut queue, Ecn::Ect0).len();
            assert_eq!(dropped == 0, ecn_prob == 1.0);
            marks.push(queue.env.marked());
        }
        assert!(marks[0] < marks[1]);
    }

    #[test]
    fn without_room_the_arrival_is_dropped() {
        let mut settings = settings();
        settings.limit = Some(Limit::Packets(2));
        let mut queue = built(&settings);
        for id in 0..3 {
            queue.enqueue(packet(1, id));
        }
        assert_eq!(queue.dropped(), [(2, DropReason::Overflow)]);
    }
}
