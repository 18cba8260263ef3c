//! netem as the wire of a link: its delay, and what happens to packets on it (linux/pkt_sched.h, tc-netem(8)).

use sojourn_path::Impair;
use sojourn_path::impair::{Loss, Shape};
use sojourn_units::{Duration, Way};

use crate::disciplines::{Options, TICK_NS};
use crate::netlink::Attributes;
use crate::shaper::{ANY, Part, ROOT, Scheduler};

/// Packets that a netem holds: more than ever occur.
const LIMIT: u32 = 200_000;
/// The major number of the first netem that impairs: what it drops is lost on the wire.
const IMPAIRED_MAJOR: u32 = 0x5e00;

/// Numbers of attributes (TCA_NETEM_*), and of the loss model in them.
const DELAY_TABLE: u16 = 2;
const REORDER: u16 = 3;
const LOSS: u16 = 5;
const RATE: u16 = 6;
const LATENCY64: u16 = 10;
const JITTER64: u16 = 11;
const LOSS_GILBERT_ELLIOTT: u16 = 2;
/// What a deviation of 1 is in a table of delays (NETEM_DIST_SCALE), and the entries of ours.
const TABLE_SCALE: f64 = 8192.0;
const TABLE_ENTRIES: u32 = 4096;

/// A propagation delay at the root of a device, with what happens to packets there.
///
/// What damages a packet loses it here: the receiver, which is next, would drop it. Jitter keeps packets in order by a rate,
/// whose packets netem never lets overtake each other; it is too high to delay any.
pub fn wire(device: &str, delay: Duration, impair: &Impair) -> Scheduler {
    let (mean, spread) = impair
        .jitter
        .map_or((Duration::ZERO, Duration::ZERO), |of| (of.mean, of.spread));
    let latency = delay + mean;
    let overtaking = impair.reorder.map_or(0.0, |how| how.share);
    let mut attributes = Attributes::new().u64(LATENCY64, latency.as_nanos());
    if !spread.is_zero() {
        attributes = attributes.u64(JITTER64, spread.as_nanos());
        attributes = attributes.put(RATE, &numbers(&[u32::MAX, 0, 0, 0]));
        if let Some(table) = impair.jitter.and_then(|of| table(of.shape)) {
            attributes = attributes.put(DELAY_TABLE, &table);
        }
    }
    if overtaking > 0.0 {
        attributes = attributes.put(REORDER, &numbers(&[probability(overtaking), 0]));
    }
    let damaged = |loss: f64| 1.0 - (1.0 - loss) * (1.0 - impair.corrupt);
    let mut loss = 0.0;
    match impair.loss {
        Some(Loss::Bursts {
            enter,
            leave,
            bad,
            good,
        }) => {
            let model = [enter, leave, damaged(bad), damaged(good)].map(probability);
            let model = Attributes::new().put(LOSS_GILBERT_ELLIOTT, &numbers(&model));
            attributes = attributes.nest(LOSS, &model);
        }
        Some(Loss::Each(share)) => loss = damaged(share),
        _ => loss = damaged(0.0),
    }
    // tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter. With a gap of 1 any packet may overtake.
    let ticks = |span: Duration| u32::try_from(span.as_nanos() / TICK_NS).unwrap_or(u32::MAX);
    let mut options = numbers(&[
        ticks(latency),
        LIMIT,
        probability(loss),
        u32::from(overtaking > 0.0),
        0,
        ticks(spread),
    ]);
    options.extend(attributes.as_bytes());
    Scheduler {
        part: Part::Discipline,
        device: device.into(),
        parent: ROOT,
        handle: ANY,
        kind: "netem".into(),
        options: Options::Fields(options),
        overhead: 0,
    }
}

/// The handle of a netem that impairs packets of a direction, the one of a band if there are several.
pub const fn handle(way: Way, band: usize) -> u32 {
    (IMPAIRED_MAJOR + 2 * band as u32 + way as u32) << 16
}

/// The direction whose packets the netem with this handle impairs; `None` if it only delays.
pub const fn impairs(handle: u32) -> Option<Way> {
    match (handle >> 24 == IMPAIRED_MAJOR >> 8, handle >> 16 & 1) {
        (false, _) => None,
        (true, 0) => Some(Way::Down),
        (true, _) => Some(Way::Up),
    }
}

/// What netem cannot do on a wire with this delay: the key, and why.
pub fn refused(delay: Duration, impair: &Impair) -> Option<(&'static str, String)> {
    if !impair.delay.is_empty() {
        let message = "must be one time on Linux, whose netem has a constant delay; backends that have it: sim";
        return Some(("delay", message.into()));
    }
    if impair.duplicate > 0.0 {
        let message =
            "must be 0 on Linux, whose receivers count copies; backends that have it: sim";
        return Some(("duplicate", message.into()));
    }
    let reorder = impair.reorder.filter(|how| how.share > 0.0)?;
    let mean = impair.jitter.map_or(Duration::ZERO, |of| of.mean);
    (reorder.by != Some(delay + mean)).then(|| {
        let message = format!(
            "must have by = \"{}\" on Linux, where a packet that overtakes leaves at once; backends that have other times: sim",
            delay + mean
        );
        ("reorder", message)
    })
}

fn numbers(fields: &[u32]) -> Vec<u8> {
    fields
        .iter()
        .flat_map(|field| field.to_ne_bytes())
        .collect()
}

/// A probability in units of 2^-32.
fn probability(share: f64) -> u32 {
    (share * f64::from(u32::MAX)) as u32
}

/// The table of a distribution's deviations, in the order of their probability; `None`: uniform, which needs none. Those
/// beyond four do not fit.
fn table(shape: Shape) -> Option<Vec<u8>> {
    let deviation: fn(f64) -> f64 = match shape {
        Shape::Normal => normal,
        Shape::Pareto => |chance| (1.0 / libm::cbrt(1.0 - chance) - 1.5) / libm::sqrt(0.75),
        _ => return None,
    };
    let entries = (0..TABLE_ENTRIES).map(|entry| {
        let chance = (f64::from(entry) + 0.5) / f64::from(TABLE_ENTRIES);
        libm::round(deviation(chance) * TABLE_SCALE) as i16
    });
    Some(entries.flat_map(i16::to_ne_bytes).collect())
}

/// The deviation below which a normal number is with this chance.
fn normal(chance: f64) -> f64 {
    let (mut low, mut high) = (-5.0, 5.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let below = libm::erfc(-middle / core::f64::consts::SQRT_2) / 2.0;
        if below < chance {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use sojourn_path::impair::Jitter;

    fn fields(scheduler: &Scheduler) -> (Vec<u32>, Vec<u8>) {
        let Options::Fields(bytes) = &scheduler.options else {
            panic!("netem has a structure");
        };
        let of = |at: usize| u32::from_ne_bytes(bytes[4 * at..4 * at + 4].try_into().expect("4"));
        ((0..6).map(of).collect(), bytes[24..].to_vec())
    }

    #[test]
    fn a_loss_and_a_damage_are_one_probability() {
        let impair = Impair::new().loss(0.5).corrupt(0.5);
        let (fields, _) = fields(&wire("eth0", Duration::from_millis(64), &impair));
        // 64 ms are a million ticks of 64 ns; 0.75 of 2^32.
        let wanted = [1_000_000, LIMIT, 0xbfff_ffff, 0, 0, 0];
        assert_eq!(fields, wanted);
    }

    #[test]
    fn bursts_are_a_nested_attribute_in_the_order_of_tc_netem_gemodel() {
        let impair = Impair::new().bursts(0.25, 0.5, 1.0, 0.0);
        let (fields, attributes) = fields(&wire("eth0", Duration::ZERO, &impair));
        assert_eq!(fields[2], 0);
        // After the latency: LOSS, nested, with GE of 16 bytes in it.
        let model = &attributes[12..];
        assert_eq!(model[..8], [24, 0, 5, 0x80, 20, 0, 2, 0]);
        let of = |at: usize| u32::from_ne_bytes(model[at..at + 4].try_into().expect("4"));
        assert_eq!(
            [of(8), of(12), of(16), of(20)],
            [0x3fff_ffff, 0x7fff_ffff, u32::MAX, 0]
        );
    }

    /// The standard normal distribution's 97.5th percentile is 1.959964; Pareto's median with exponent 3 is the cube root of 2.
    #[test]
    fn tables_are_inverse_distributions() {
        assert!((normal(0.975) - 1.959_964).abs() < 1e-6);
        let table = table(Shape::Pareto).expect("a table");
        let at = |entry: usize| i16::from_ne_bytes([table[2 * entry], table[2 * entry + 1]]);
        let median = (1.259_921 - 1.5) / 0.75_f64.sqrt() * 8192.0;
        assert!((f64::from(at(2048)) - median).abs() < 3.0);
        assert_eq!(at(4095), i16::MAX);
    }

    #[test]
    fn what_netem_cannot_do_is_refused() {
        let delay = Duration::from_millis(20);
        let ms = core::time::Duration::from_millis;
        let by = |span| Impair::new().reorder(0.01, span);
        assert_eq!(refused(delay, &by(delay)), None);
        let (key, message) = refused(delay, &by(Duration::from_millis(5))).expect("refused");
        assert_eq!(key, "reorder");
        assert!(
            message.starts_with("must have by = \"20 ms\" on Linux"),
            "{message}"
        );
        let twice = refused(delay, &Impair::new().duplicate(0.1));
        assert_eq!(twice.map(|(key, _)| key), Some("duplicate"));
        let steps = Impair::new().delays([(ms(0), ms(5)), (ms(10), ms(9))]);
        assert_eq!(refused(delay, &steps).map(|(key, _)| key), Some("delay"));
        let jitter = Jitter::new(Duration::ZERO, Duration::from_millis(1), Shape::Normal);
        assert_eq!(refused(delay, &Impair::new().jitter_of(jitter)), None);
    }
}
