//! SFQ with an AQM on every queue: `sfq_red` as Linux's `sch_sfq` has it, and `sfq_ared`, `sfq_pie`
//! and `sfq_madpie`, which Khademi, Ros and Welzl (2013, §8) suggest to try.
//!
//! Each is [`crate::sfq`] over the algorithm; the keys are those of both, and `variant` is the
//! algorithm's, with SFQ as in Linux if it is `linux`. With RED, Linux gives a queue that starts to
//! fill a new average, and so does that variant; elsewhere a queue keeps its state. Thresholds are
//! for each queue, not for all.

use alloc::boxed::Box;

use crate::aqm::Aqm;
use crate::ared::{self, Ared};
use crate::catalogue::{Discipline, Key, SettingError, Settings, join_keys, keys_without};
use crate::madpie;
use crate::packet::Packet;
use crate::pie::{self, Pie};
use crate::qdisc::{Limit, Qdisc};
use crate::red::{self, Red};
use crate::sfq::{self, Sfq};

const OWN: usize = sfq::KEYS.len() - 1;
const SFQ_KEYS: [Key; OWN] = keys_without(sfq::KEYS, "variant");
const RED_KEYS: &[Key] = &join_keys::<{ OWN + red::KEYS.len() }>(&[&SFQ_KEYS, red::KEYS]);
const ARED_KEYS: &[Key] = &join_keys::<{ OWN + ared::KEYS.len() }>(&[&SFQ_KEYS, ared::KEYS]);
const PIE_KEYS: &[Key] = &join_keys::<{ OWN + pie::KEYS.len() }>(&[&SFQ_KEYS, pie::KEYS]);
const MADPIE_KEYS: &[Key] = &join_keys::<{ OWN + madpie::KEYS.len() }>(&[&SFQ_KEYS, madpie::KEYS]);

type Built<P> = Result<Box<dyn Qdisc<P> + Send>, SettingError>;

/// SFQ by the settings with AQMs that `aqm` makes, given what one queue may hold.
fn over<P, A, F>(
    settings: &Settings,
    aqm: impl FnOnce(Limit) -> Result<F, SettingError>,
) -> Built<P>
where
    P: Packet + Send + 'static,
    A: Aqm + Send + 'static,
    F: Fn() -> A + Send + 'static,
{
    let config = sfq::config(settings)?;
    Ok(Box::new(Sfq::new(config, aqm(config.limit)?)))
}

/// `sfq_red`.
pub fn sfq_red<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfq_red",
        summary: "SFQ with RED on every queue",
        source: "tc-sfq(8); Floyd and Jacobson 1993",
        keys: RED_KEYS,
        build: |settings| {
            let mut config = sfq::config(settings)?;
            let red = red::config(settings, config.limit)?;
            config.renew_aqm = red.variant == red::Variant::Linux;
            Ok(Box::new(Sfq::new(config, move || Red::new(red))))
        },
    }
}

/// `sfq_ared`.
pub fn sfq_ared<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfq_ared",
        summary: "SFQ with adaptive RED on every queue",
        source: "Khademi et al. 2013, section 8",
        keys: ARED_KEYS,
        build: |settings| {
            over(settings, |limit| {
                let (red, adaptation) =
                    (ared::config(settings, limit)?, ared::adaptation(settings)?);
                Ok(move || Ared::new(red, adaptation))
            })
        },
    }
}

/// `sfq_pie`.
pub fn sfq_pie<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfq_pie",
        summary: "SFQ with PIE on every queue",
        source: "Khademi et al. 2013, section 8",
        keys: PIE_KEYS,
        build: |settings| {
            over(settings, |limit| {
                let pie = pie::config(settings, "rfc8033", limit)?;
                Ok(move || Pie::new(pie))
            })
        },
    }
}

/// `sfq_madpie`.
pub fn sfq_madpie<P: Packet + Send + 'static>() -> Discipline<P> {
    Discipline {
        name: "sfq_madpie",
        summary: "SFQ with MADPIE on every queue",
        source: "Kuhn and Ros 2016; Khademi et al. 2013, section 8",
        keys: MADPIE_KEYS,
        build: |settings| over(settings, |limit| madpie::maker(settings, limit)),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use sojourn_units::{Rate, Time, Value};

    use super::*;
    use crate::qdisc::DropReason;
    use crate::testing::{Driven, TestPacket, packet};

    fn disciplines() -> [Discipline<TestPacket>; 4] {
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
            let mut names: Vec<&str> = discipline.keys.iter().map(|key| key.name).collect();
            let before = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), before, "{}", discipline.name);
        }
    }

    #[test]
    fn only_the_flow_that_overloads_its_queue_loses_packets_to_the_aqm() {
        // Flow 1 sends two packets per 10 ms, flow 2 one per 40 ms; one leaves per 10 ms, for 3 s:
        // flow 1's queue grows to hundreds of packets and more than a second.
        for (discipline, linux) in disciplines().iter().flat_map(|d| [(d, false), (d, true)]) {
            let qdisc = (discipline.build)(&settings(linux)).expect("good settings");
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
    fn linux_gives_a_queue_that_starts_to_fill_a_new_average() {
        // 30 packets raise the average above min, 10000 B; once they have left, as published what
        // has not decayed of it remains; in Linux it is zero.
        for (linux, remains) in [(false, true), (true, false)] {
            let mut settings = settings(linux);
            settings.values.extend([
                ("min".into(), Value::Bytes(10_000)),
                ("max".into(), Value::Bytes(100_000)),
                ("weight".into(), Value::Number(0.25)),
                ("avpkt".into(), Value::Bytes(1000)),
                ("probability".into(), Value::Number(0.0)),
            ]);
            let mut queue = Driven::boxed((sfq_red().build)(&settings).expect("good settings"));
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
