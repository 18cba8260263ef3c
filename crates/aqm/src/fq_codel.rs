//! FQ-CoDel: flow queueing with CoDel on every queue (RFC 8290), and the same with CoDel switched off.
//!
//! It combines [`crate::fq`] and [`crate::codel`]. `variant = "linux"` follows sch_fq_codel in both: CoDel's
//! fixed-point arithmetic, its last-frame rule by the backlog of the whole discipline, CoDel counting overflow drops,
//! and no detour through an empty old list.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use crate::codel::{self, CoDel};
use crate::discipline::Discipline;
use crate::fifo::DropTail;
use crate::fq::{self, Config, Fair, Overflow, Variant};
use crate::key::{Key, SettingError};
use crate::packet::Packet;
use crate::parameters;
use crate::parameters::Parameters;
use crate::settings::Settings;

parameters! {
    struct Batch {
        /// maximum packets dropped at once from the queue with the most bytes when the limit is exceeded
        drop_batch: u64,
    }
}

const BATCH: Batch = Batch { drop_batch: 64 };

parameters! {
    struct Nocodel {
        /// treatment of an emptied new queue: RFC 8290's or Linux's
        variant: Variant,
    }
}

const NOCODEL: Nocodel = Nocodel {
    variant: Variant::Rfc8290,
};

/// The keys of the scheduler for these disciplines.
fn keys() -> Vec<Key> {
    [fq::keys(), BATCH.keys()].concat()
}

fn config(settings: &Settings, variant: Variant) -> Result<Config, SettingError> {
    let Batch { drop_batch } = BATCH.given(settings)?;
    if drop_batch == 0 || drop_batch > u64::from(u32::MAX) {
        let message = format!("got {drop_batch}; must be 1 to {}", u32::MAX);
        return Err(SettingError::new("drop_batch", message));
    }
    let batch = drop_batch as u32;
    fq::config(settings, Overflow::Fattest { batch }, variant)
}

/// `fq_codel`.
pub fn fq_codel<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "fq_codel",
        summary: "flow queueing with CoDel on every queue",
        source: "RFC 8290",
        keys: Box::new(|| [codel::keys(), keys()].concat()),
        make: Box::new(|settings| {
            let codel = codel::config(settings, true)?;
            let variant = match codel.variant {
                codel::Variant::Linux => Variant::Linux,
                codel::Variant::Rfc8289 | codel::Variant::Published2012 => Variant::Rfc8290,
            };
            let config = config(settings, variant)?;
            Ok(Box::new(Fair::new(config, || CoDel::new(codel))))
        }),
    }
}

/// `fq_nocodel`: the scheduler alone. On overflow it drops from the head of the queue with the most bytes.
pub fn fq_nocodel<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "fq_nocodel",
        summary: "fq_codel with its CoDel switched off",
        source: "RFC 8290; Høiland-Jørgensen et al. 2015",
        keys: Box::new(|| [keys(), NOCODEL.keys()].concat()),
        make: Box::new(|settings| {
            let Nocodel { variant } = NOCODEL.given(settings)?;
            let config = config(settings, variant)?;
            Ok(Box::new(Fair::new(config, || DropTail)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use sojourn_units::{Rate, Time, Value};

    use super::*;
    use crate::Datagram;
    use crate::limit::Limit;
    use crate::packet::Ecn;
    use crate::qdisc::Qdisc;
    use crate::testing::{Driven, packet};
    use crate::verdict::DropReason;

    fn settings(values: &[(&str, Value)]) -> Settings {
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.values = values
            .iter()
            .map(|(name, value)| (String::from(*name), value.clone()))
            .collect();
        settings
    }

    fn built(
        discipline: &Discipline<Datagram<u64>>,
        settings: &Settings,
    ) -> Driven<dyn Qdisc<Datagram<u64>> + Send> {
        Driven::boxed(discipline.build(settings).expect("good settings"))
    }

    /// For 3 s, two packets arrive per 10 ms and one leaves: the delay is above CoDel's target from the start.
    fn overload(queue: &mut Driven<dyn Qdisc<Datagram<u64>> + Send>, ecn: Ecn) -> Vec<DropReason> {
        for step in 0..300 {
            queue.now = Time::from_millis(10 * step);
            queue.enqueue(packet(1, 2 * step).with_ecn(ecn));
            queue.enqueue(packet(1, 2 * step + 1).with_ecn(ecn));
            queue.dequeue();
        }
        queue.dropped().into_iter().map(|(_, why)| why).collect()
    }

    #[test]
    fn ecn_is_on_unless_switched_off() {
        // RFC 8290 §5.2.6: ECN is enabled by default.
        let mut queue = built(&fq_codel(), &settings(&[]));
        assert!(overload(&mut queue, Ecn::Ect0).is_empty());
        assert!(queue.env.marked() > 0);
        let mut queue = built(&fq_codel(), &settings(&[("ecn", Value::Flag(false))]));
        assert!(!overload(&mut queue, Ecn::Ect0).is_empty());
        assert_eq!(queue.env.marked(), 0);
    }

    #[test]
    fn without_codel_only_the_limit_drops() {
        let mut queue = built(&fq_nocodel(), &settings(&[]));
        assert!(overload(&mut queue, Ecn::NotEct).is_empty());
        let mut settings = settings(&[]);
        settings.limit = Some(Limit::Packets(100));
        let mut queue = built(&fq_nocodel(), &settings);
        let dropped = overload(&mut queue, Ecn::NotEct);
        assert!(!dropped.is_empty() && dropped.iter().all(|&why| why == DropReason::Overflow));
    }

    #[test]
    fn a_number_out_of_range_is_refused_with_what_is_accepted() {
        for (key, value, message) in [
            ("flows", Value::Count(0), "flows: got 0; must be 1 to 65536"),
            (
                "quantum",
                Value::Bytes(0),
                "quantum: got \"0 B\"; must be 1 B to 1 MiB",
            ),
            (
                "drop_batch",
                Value::Count(0),
                "drop_batch: got 0; must be 1 to 4294967295",
            ),
        ] {
            let settings = settings(&[(key, value)]);
            let error = fq_codel::<Datagram<u64>>()
                .build(&settings)
                .err()
                .expect("refused");
            assert_eq!(error.to_string(), message);
        }
    }
}
