//! SFQ with an AQM on every queue: `sfq_red` as in Linux's `sch_sfq`; `sfq_ared`, proposed by Khademi, Ros and Welzl
//! (2013, §8); `sfq_pie` and `sfq_madpie`, since any AQM can be combined with fair queueing (§6).
//!
//! Each combines [`crate::sfq`] with the algorithm and has the keys of both. `variant` is the algorithm's; if it is
//! `linux`, SFQ follows Linux too. With RED, Linux restarts the average of a queue that becomes non-empty, and so does
//! that variant; otherwise a queue keeps its state. Thresholds apply to each queue, not to all together.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use crate::ared::{self, Ared};
use crate::discipline::Discipline;
use crate::key::{Key, SettingError};
use crate::limit::Limit;
use crate::madpie;
use crate::packet::Packet;
use crate::parameter::Parameter;
use crate::parameters;
use crate::parameters::Parameters as _;
use crate::pie::{self, Pie};
use crate::red::{self, Red, Unit};
use crate::settings::Settings;
use crate::sfq::{self, Sfq};

parameters! {
    struct FlowLimit {
        /// bytes that a queue may hold; without min and max, max is a quarter of it
        redflowlimit: Option<u64> as Bytes,
    }
}

const FLOW_LIMIT: FlowLimit = FlowLimit { redflowlimit: None };

/// The keys of SFQ and of the AQM.
fn keys(aqm: Vec<Key>) -> Vec<Key> {
    [sfq::DEFAULT.keys(), aqm].concat()
}

/// SFQ by the settings: Linux's if the AQM's variant is `linux`.
fn scheduler<V: Parameter + PartialEq>(
    settings: &Settings,
    default: V,
    linux: V,
) -> Result<sfq::Config, SettingError> {
    let variant = match settings.variant_or(default)? == linux {
        true => sfq::Variant::Linux,
        false => sfq::Variant::McKenney,
    };
    sfq::config(settings, variant)
}

/// RED's parameters for a queue that may hold `limit`, or `flow_limit` bytes: `max` is a quarter of that.
fn red_of_queues(
    settings: &Settings,
    limit: Limit,
    flow_limit: Option<u64>,
) -> Result<red::Config, SettingError> {
    let variant = red::WHICH.given(settings)?.variant;
    let given = red::Parameters::read(settings, variant)?;
    let Some(bytes) = flow_limit else {
        return given.config(settings, variant, limit);
    };
    if given.min.is_some() || given.max.is_some() {
        return given.config(settings, variant, Limit::Bytes(bytes));
    }
    if bytes < 12 {
        let message = format!("got \"{bytes} B\"; must be at least 12 B");
        return Err(SettingError::new("redflowlimit", message));
    }
    let max = bytes / 4;
    given.config_between(settings, variant, Unit::Bytes, max / 3, max)
}

/// `sfq_red`.
pub fn sfq_red<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfq_red",
        summary: "SFQ with RED on every queue",
        source: "tc-sfq(8); Floyd and Jacobson 1993",
        keys: Box::new(|| keys([FLOW_LIMIT.keys(), red::keys(), red::WHICH.keys()].concat())),
        make: Box::new(|settings| {
            let mut config = scheduler(settings, red::Variant::Floyd, red::Variant::Linux)?;
            let flow_limit = FLOW_LIMIT.given(settings)?.redflowlimit;
            let red = red_of_queues(settings, config.limit, flow_limit)?;
            config.renew_aqm = red.variant == red::Variant::Linux;
            // The kernel receives the limit but does not enforce it: in Linux it only sets `max`.
            config.flow_limit = flow_limit.filter(|_| !config.renew_aqm);
            Ok(Box::new(Sfq::new(config, move || Red::new(red))))
        }),
    }
}

/// `sfq_ared`.
pub fn sfq_ared<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfq_ared",
        summary: "SFQ with adaptive RED on every queue",
        source: "Khademi et al. 2013, section 8",
        keys: Box::new(|| keys(ared::keys())),
        make: Box::new(|settings| {
            let config = scheduler(settings, ared::Variant::Floyd, ared::Variant::Linux)?;
            let red = ared::config(settings, config.limit)?;
            let adaptation = ared::adaptation(settings)?;
            Ok(Box::new(Sfq::new(config, move || {
                Ared::new(red, adaptation)
            })))
        }),
    }
}

/// `sfq_pie`.
pub fn sfq_pie<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfq_pie",
        summary: "SFQ with PIE on every queue",
        source: "Khademi et al. 2013, section 6",
        keys: Box::new(|| {
            keys(pie::Config::keys_by_variant(&pie::defaults(
                pie::Variant::Rfc8033,
            )))
        }),
        make: Box::new(|settings| {
            let config = scheduler(settings, pie::Variant::Rfc8033, pie::Variant::Linux)?;
            let pie = pie::config(settings, pie::Variant::Rfc8033, config.limit)?;
            Ok(Box::new(Sfq::new(config, move || Pie::new(pie))))
        }),
    }
}

/// `sfq_madpie`.
pub fn sfq_madpie<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfq_madpie",
        summary: "SFQ with MADPIE on every queue",
        source: "Kuhn and Ros 2016; Khademi et al. 2013, section 6",
        keys: Box::new(|| keys(madpie::keys())),
        make: Box::new(|settings| {
            let config = scheduler(settings, pie::Variant::Draft2013, pie::Variant::Linux)?;
            let madpie = madpie::maker(settings, config.limit)?;
            Ok(Box::new(Sfq::new(config, madpie)))
        }),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use sojourn_units::{Rate, Time, Value};

    use super::*;
    use crate::Datagram;
    use crate::testing::{Driven, packet};
    use crate::verdict::DropReason;

    fn disciplines() -> [Discipline<Datagram<u64>>; 4] {
        [sfq_red(), sfq_ared(), sfq_pie(), sfq_madpie()]
    }

    fn settings(linux: bool) -> Settings {
        let mut settings = Settings::new(Rate::from_mbps(10), 1514);
        settings.limit = Some(Limit::Packets(400));
        if linux {
            settings
                .values
                .push(("variant".into(), Value::Word("linux".into())));
        }
        settings
    }

    #[test]
    fn no_key_is_there_twice() {
        for discipline in disciplines() {
            let mut names: Vec<&str> = discipline.keys().into_iter().map(|key| key.name).collect();
            let before = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), before, "{}", discipline.name);
        }
    }

    #[test]
    fn only_the_flow_that_overloads_its_queue_loses_packets_to_the_aqm() {
        // For 3 s, flow 1 sends two packets per 10 ms, flow 2 one per 40 ms; one leaves per 10 ms. Flow 1's queue
        // grows to hundreds of packets and more than a second.
        for (discipline, linux) in disciplines().iter().flat_map(|d| [(d, false), (d, true)]) {
            let qdisc = discipline.build(&settings(linux)).expect("good settings");
            let mut queue = Driven::boxed(qdisc);
            for step in 0..300 {
                let due = Time::from_millis(10 * step);
                while let Some(timer) = queue.qdisc.next_timer().filter(|&timer| timer <= due) {
                    queue.qdisc.on_timer(timer, &mut queue.env);
                }
                queue.now = due;
                queue.enqueue(packet(1, step));
                queue.enqueue(packet(1, step));
                if step % 4 == 0 {
                    queue.enqueue(packet(2, 1_000_000 + step));
                }
                queue.dequeue();
            }
            let dropped = queue.dropped();
            let by_aqm = dropped
                .iter()
                .filter(|&&(_, why)| why == DropReason::Aqm)
                .count();
            assert!(by_aqm > 0, "{} linux: {linux}", discipline.name);
            assert!(
                dropped.iter().all(|&(id, _)| id < 1_000_000),
                "{}",
                discipline.name
            );
        }
    }

    #[test]
    fn redflowlimit_bounds_each_queue_in_bytes_and_sets_max_to_a_quarter_of_it() {
        // tc-sfq(8): max defaults to redflowlimit / 4, min to max / 3; 12000 B: max 3000 B, min 1000 B.
        let mut settings = settings(false);
        settings
            .values
            .push(("redflowlimit".into(), Value::Bytes(12_000)));
        let red =
            red_of_queues(&settings, Limit::Packets(400), Some(12_000)).expect("good settings");
        assert_eq!((red.unit, red.min, red.max), (Unit::Bytes, 1000, 3000));
        // With a probability of 0 and a slow average RED drops nothing: 12 packets of 1000 B fit.
        settings
            .values
            .push(("probability".into(), Value::Number(0.0)));
        let mut queue = Driven::boxed(sfq_red().build(&settings).expect("good settings"));
        for id in 0..20 {
            queue.enqueue(packet(1, id));
        }
        queue.enqueue(packet(2, 20));
        let lost: Vec<u64> = queue.dropped().iter().map(|&(id, _)| id).collect();
        assert_eq!(lost, (12..20).collect::<Vec<u64>>());
    }

    #[test]
    fn a_large_packet_displaces_as_many_small_heads_as_it_needs_room_for() {
        let mut settings = settings(false);
        settings.values.extend([
            ("redflowlimit".into(), Value::Bytes(1_500)),
            ("headdrop".into(), Value::Flag(true)),
            ("probability".into(), Value::Number(0.0)),
        ]);
        let mut queue = Driven::boxed(sfq_red().build(&settings).expect("good settings"));
        for id in 0..10 {
            queue.enqueue(packet(1, id).with_bytes(100));
        }
        // 1000 B are queued; 1000 more fit into 1500 once five packets of 100 have left. 2000 never fit.
        queue.enqueue(packet(1, 10));
        queue.enqueue(packet(1, 11).with_bytes(2_000));
        let lost: Vec<u64> = queue.dropped().iter().map(|&(id, _)| id).collect();
        assert_eq!(lost, [0, 1, 2, 3, 4, 11]);
    }

    #[test]
    fn linux_gives_a_queue_that_starts_to_fill_a_new_average() {
        // 30 packets raise the average above min, 10000 B. Once they have left, the average decays as published; in
        // Linux it is zero.
        for (linux, remains) in [(false, true), (true, false)] {
            let mut settings = settings(linux);
            settings.values.extend([
                ("min".into(), Value::Bytes(10_000)),
                ("max".into(), Value::Bytes(100_000)),
                ("weight".into(), Value::Number(0.25)),
                ("avpkt".into(), Value::Bytes(1000)),
                ("probability".into(), Value::Number(0.0)),
            ]);
            let mut queue = Driven::boxed(sfq_red().build(&settings).expect("good settings"));
            for id in 0..30 {
                queue.enqueue(packet(1, id));
            }
            queue.ids(31);
            queue.enqueue(packet(1, 30));
            let mut average = -1.0;
            queue.qdisc.state(&mut |name, value| {
                if name == "avg" {
                    average = value;
                }
            });
            assert_eq!(average > 5_000.0, remains, "{average}");
            assert!(average >= 0.0);
        }
    }
}
