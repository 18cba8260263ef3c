use sojourn_experiment::derived::Limit;
use sojourn_experiment::model::Queue;
use sojourn_units::{Duration, Rate, Value};

use super::*;
use crate::netlink::{attributes, number};

const FRAME: u32 = 1514;

fn arm(aqm: &str, settings: &[(&str, Value)]) -> Queue {
    Queue {
        aqm: aqm.into(),
        label: aqm.into(),
        limit: None,
        settings: settings
            .iter()
            .map(|(key, value)| ((*key).into(), value.clone()))
            .collect(),
        classes: true,
        up: None,
    }
}

fn options(
    aqm: &str,
    limit: Option<Limit>,
    settings: &[(&str, Value)],
) -> Result<Options, Refusal> {
    leaf(&arm(aqm, settings), limit, FRAME, Rate::from_mbps(10)).map(|leaf| leaf.options)
}

/// The numbers of the attributes, and their values as numbers of four bytes.
fn numbers(
    aqm: &str,
    limit: Option<Limit>,
    settings: &[(&str, Value)],
) -> Result<Vec<(u16, u64)>, Refusal> {
    let Options::Attributes(given) = options(aqm, limit, settings)? else {
        panic!("{aqm} has attributes");
    };
    Ok(attributes(given.as_bytes())
        .map(|(kind, value)| (kind, number::<4>(value, 0).expect("four bytes")))
        .collect())
}

/// The fields of four bytes of a structure.
fn fields(bytes: &[u8]) -> Vec<u64> {
    (0..bytes.len() / 4)
        .map(|at| number::<4>(bytes, 4 * at).expect("four bytes"))
        .collect()
}

fn millis(millis: u64) -> Value {
    Value::Duration(Duration::from_millis(millis))
}

fn word(word: &str) -> Value {
    Value::Word(word.into())
}

/// linux/pkt_sched.h: TCA_CODEL_TARGET is 1, LIMIT 2, INTERVAL 3, ECN 4; PIE has TARGET 1, LIMIT 2, TUPDATE 3. Times are in
/// microseconds.
#[test]
fn keys_become_attributes_of_the_kernel() {
    let limit = Some(Limit::Packets(1000));
    let settings = [
        ("target", millis(5)),
        ("interval", millis(100)),
        ("ecn", Value::Flag(true)),
    ];
    let codel = [(2, 1000), (1, 5000), (3, 100_000), (4, 1)];
    assert_eq!(numbers("codel", limit, &settings), Ok(codel.into()));
    let settings = [
        ("target", millis(20)),
        ("tupdate", millis(30)),
        ("variant", word("linux")),
    ];
    let pie = [(2, 1000), (1, 20_000), (3, 30_000)];
    assert_eq!(numbers("pie", limit, &settings), Ok(pie.into()));
    assert_eq!(
        numbers("fq_codel", None, &[("flows", Value::Count(64))]),
        Ok(vec![(5, 64)])
    );
    assert_eq!(numbers("codel", None, &[]), Ok(vec![]));
    let disabled = [(1, 1_000_000_000), (3, 1_000_000_000), (4, 0)];
    assert_eq!(numbers("fq_nocodel", None, &[]), Ok(disabled.into()));
}

/// TCA_FQ_CODEL_CE_THRESHOLD_SELECTOR is 10, TCA_FQ_CODEL_CE_THRESHOLD_MASK 11: a byte each.
#[test]
fn a_selector_is_a_part_of_the_ds_field() {
    let given = |chosen| {
        let settings = [("ce_threshold_selector", word(chosen))];
        match options("fq_codel", None, &settings) {
            Ok(Options::Attributes(given)) => attributes(given.as_bytes())
                .map(|(kind, value)| (kind, value[0]))
                .collect::<Vec<_>>(),
            _ => panic!("fq_codel has attributes"),
        }
    };
    assert_eq!(given("ect1"), [(10, 0x01), (11, 0x03)]);
    assert_eq!(given("all"), []);
}

/// TCA_CAKE_BASE_RATE64 is 2, DIFFSERV_MODE 3, FLOW_MODE 5, RTT 7, TARGET 8. 8 Mbit/s are 10^6 bytes a second; the target
/// is a twentieth of the rtt, as tc sets it.
#[test]
fn cake_has_the_rate_of_its_link_unless_it_shapes() {
    assert_eq!(numbers("cake", None, &[]), Ok(vec![(2, 0)]));
    let settings = [
        ("bandwidth", Value::Rate(Rate::from_mbps(8))),
        ("diffserv", word("besteffort")),
        ("isolation", word("triple-isolate")),
        ("rtt", millis(20)),
    ];
    let cake = [(2, 1_000_000), (3, 3), (5, 7), (7, 20_000), (8, 1000)];
    assert_eq!(numbers("cake", None, &settings), Ok(cake.into()));
}

#[test]
fn a_fifo_has_only_its_limit() {
    let limit = Some(Limit::Packets(83));
    let fields = Options::Fields(83_u32.to_ne_bytes().into());
    assert_eq!(options("pfifo", limit, &[]), Ok(fields));
    let none = Options::Attributes(Attributes::new());
    assert_eq!(options("pfifo_head_drop", None, &[]), Ok(none));
}

/// The parts of RED's options.
struct Red {
    /// Limit and thresholds.
    fields: Vec<u64>,
    /// Logarithms of the weight, the slope and the cell, and the flags.
    logs: [u8; 4],
    decay: Vec<u8>,
    probability: u64,
}

fn red(aqm: &str, limit: Option<Limit>, settings: &[(&str, Value)]) -> Red {
    let Ok(Options::Attributes(given)) = options(aqm, limit, settings) else {
        panic!("{aqm} has attributes");
    };
    let parts: Vec<&[u8]> = attributes(given.as_bytes())
        .map(|(_, value)| value)
        .collect();
    Red {
        fields: fields(&parts[0][..12]),
        logs: parts[0][12..16].try_into().expect("four bytes"),
        decay: parts[1].into(),
        probability: number::<4>(parts[2], 0).expect("four bytes"),
    }
}

/// tc-red(8): burst defaults to (2·min + max) / (3·avpkt) = (25000 + 37500) / 3000 = 20 packets. Then
/// 20 + 1 − 12.5 = 8.5 packets must be at most (1 − (1 − W)^20) / W: 7.4 with W = 1/8, 11.6 with 1/16. The slope 0.02 / 25000 = 8e-7 is
/// more than 2^−21, not than 2^−20. A packet of 1000 bytes takes 800 µs, 12500 ticks: the average decays by 0.0645 a packet, so 31 halvings
/// take 6.0 million ticks, less than 512 cells of 2^14. 0.02 · 2^32 = 85899345.
#[test]
fn ared_sets_parameters_that_the_kernel_requires() {
    let (min, max) = (Value::Bytes(12_500), Value::Bytes(37_500));
    let settings = [("min", min), ("max", max)];
    let red = red("ared", Some(Limit::Bytes(150_000)), &settings);
    assert_eq!(red.fields, [150_000, 12_500, 37_500]);
    assert_eq!(red.logs, [4, 21, 14, 0]);
    assert_eq!(red.probability, 85_899_345);
    let decay = red.decay;
    assert_eq!((decay.len(), decay[0], decay[255]), (256, 0, 31));
    // A cell of 16384 ticks is 1.31 packets: 0.0846 a cell.
    assert_eq!((decay[11], decay[12], decay[200]), (0, 1, 16));
}

/// tc-red(8): max is a quarter of the limit, min a third of that; without the variant, 5 and 15 frames, or the target of ARED.
#[test]
fn the_variant_linux_has_the_thresholds_of_tc() {
    let limit = Some(Limit::Bytes(120_000));
    let linux = [("variant", word("linux"))];
    for aqm in ["red", "ared"] {
        assert_eq!(red(aqm, limit, &linux).fields, [120_000, 10_000, 30_000]);
    }
    assert_eq!(red("red", limit, &[]).fields, [120_000, 7570, 22_710]);
}

/// Flag 1 is ECN, 4 adaptation. RED has them in TCA_RED_FLAGS, as tc sends them, with a mask of all; CHOKe in its structure.
#[test]
fn flags_of_red_are_an_attribute() {
    let ecn = [("ecn", Value::Flag(true))];
    let Ok(Options::Attributes(given)) = options("ared", None, &ecn) else {
        panic!("ared has attributes");
    };
    let flags = attributes(given.as_bytes()).find(|(kind, _)| *kind == 4);
    assert_eq!(flags.map(|(_, value)| fields(value)), Some(vec![5, 15]));
    assert_eq!(red("choke", None, &ecn).logs[3], 1);
}

/// 10 Mbit/s × 20 ms = 25000 B: thresholds at 0.5 and 1.5 times that (Floyd et al. 2001, section 4). The default limit is 1000
/// packets, in bytes.
#[test]
fn a_target_sets_the_thresholds_of_adaptive_red() {
    let red = red("ared", None, &[("target", millis(20))]);
    assert_eq!(red.fields, [1_514_000, 12_500, 37_500]);
}

/// RFC 8033's alpha of 0.125 per second is 2 sixteenths in the kernel. TCA_PIE_ALPHA is 4, BETA 5.
#[test]
fn gains_of_pie_are_sixteenths_in_the_kernel() {
    let (alpha, beta) = (
        ("alpha", Value::Number(0.125)),
        ("beta", Value::Number(1.25)),
    );
    assert_eq!(
        numbers("pie", None, &[alpha.clone(), beta]),
        Ok(vec![(4, 2), (5, 20)])
    );
    assert_eq!(numbers("fq_pie", None, &[alpha]), Ok(vec![(5, 2)]));
    let linux = [("alpha", Value::Number(2.0)), ("variant", word("linux"))];
    assert_eq!(numbers("pie", None, &linux), Ok(vec![(4, 2)]));
    let odd = numbers("pie", None, &[("alpha", Value::Number(0.1))]).unwrap_err();
    assert_eq!(
        (odd.key.as_str(), odd.must.contains("sixteenths")),
        ("alpha", true)
    );
}

/// tc-choke(8): min and max in packets; the limit is required. 30 kB are 19 frames of 1514 bytes.
#[test]
fn choke_counts_packets() {
    let (min, max) = (("min", Value::Bytes(30_000)), ("max", Value::Packets(60)));
    assert_eq!(red("choke", None, &[min, max]).fields, [1000, 19, 60]);
    // A quarter of the limit, and a third of that.
    let limit = Some(Limit::Packets(400));
    assert_eq!(red("choke", limit, &[]).fields, [400, 33, 100]);
}

/// tc-sfb(8) has times in milliseconds and probabilities in 65535ths. Its default steps are 0.0005 and 0.00005, ours are 0.001 and
/// 0.001 / 6.
#[test]
fn sfb_gets_its_steps_except_in_the_variant_linux() {
    let sfb = |limit, settings: &[(&str, Value)]| {
        let Options::Attributes(given) = options("sfb", limit, settings).unwrap() else {
            panic!("sfb has attributes");
        };
        let (_, parameters) = attributes(given.as_bytes()).next().expect("its parameters");
        fields(parameters)
    };
    assert_eq!(
        sfb(Some(Limit::Packets(500)), &[]),
        [600_000, 60_000, 25, 20, 66, 11, 500, 10, 20]
    );
    let linux = [
        ("variant", word("linux")),
        ("rehash", millis(90_000)),
        ("increment", Value::Number(0.01)),
        ("max", Value::Packets(30)),
    ];
    assert_eq!(
        sfb(None, &linux),
        [90_000, 60_000, 30, 24, 655, 3, 0, 10, 20]
    );
    assert_eq!(
        options("sfb", None, &[("ecn", Value::Flag(false))])
            .unwrap_err()
            .key,
        "ecn"
    );
}

/// tc_sfq_qopt_v1: quantum, perturb_period in seconds, limit, divisor, flows, depth, headdrop; then RED's limit, thresholds, logs
/// and probability, and six counters.
#[test]
fn sfq_is_a_structure_with_the_part_of_red() {
    let sfq = |aqm: &str, settings: &[(&str, Value)]| match options(
        aqm,
        Some(Limit::Packets(1000)),
        settings,
    ) {
        Ok(Options::Fields(bytes)) => Ok(fields(&bytes)),
        Ok(Options::Attributes(_)) => panic!("{aqm} has a structure"),
        Err(refusal) => Err(refusal.key),
    };
    let settings = [
        ("flows", Value::Count(64)),
        ("perturb", millis(10_000)),
        ("headdrop", Value::Flag(true)),
    ];
    let mut plain = vec![0, 10, 1000, 0, 64, 0, 1];
    plain.resize(18, 0);
    assert_eq!(sfq("sfq", &settings), Ok(plain));
    let with_red = sfq(
        "sfq_red",
        &[
            ("redflowlimit", Value::Bytes(60_000)),
            ("min", Value::Bytes(8000)),
            ("max", Value::Bytes(24_000)),
            ("probability", Value::Number(0.1)),
        ],
    )
    .unwrap();
    assert_eq!(with_red[7..10], [60_000, 8000, 24_000]);
    assert_eq!(with_red[11], 429_496_729);
    assert_eq!(
        sfq("sfq", &[("perturb", millis(500))]),
        Err("perturb".into())
    );
    // Without thresholds the simulator's: 5 and 15 frames of 1514 B, or with tc's rule a twelfth and a quarter of 1000.
    assert_eq!(sfq("sfq_red", &[]).unwrap()[8..10], [7570, 22_710]);
    let of_tc = sfq("sfq_red", &[("variant", word("linux"))]).unwrap();
    assert_eq!(of_tc[8..10], [126_166, 378_500]);
}

/// TCA_PIE_TARGET is 1, TUPDATE 3, DQ_RATE_ESTIMATOR 8.
#[test]
fn pie_of_2013_gets_its_own_defaults() {
    assert_eq!(
        numbers(
            "pie",
            None,
            &[("target", millis(5)), ("variant", word("2013"))]
        ),
        Ok(vec![(1, 5000), (3, 30_000), (8, 1)])
    );
}

#[test]
fn only_the_kernels_fixed_values_are_accepted() {
    assert_eq!(
        numbers("pie", None, &[("max_burst", millis(150))]),
        Ok(vec![])
    );
    let refusal = numbers("pie", None, &[("max_burst", millis(100))]).unwrap_err();
    assert_eq!(refusal.key, "max_burst");
    assert_eq!(refusal.must, "must be 150 ms, which Linux's pie fixes");
    assert_eq!(
        numbers("red", None, &[("gentle", Value::Flag(true))])
            .unwrap_err()
            .key,
        "gentle"
    );
    assert_eq!(
        numbers("codel", None, &[("ce_exclude", Value::Flag(true))])
            .unwrap_err()
            .key,
        "ce_exclude"
    );
}

#[test]
fn a_discipline_that_linux_lacks_is_refused_with_those_that_it_has() {
    let refusal = options("blue", None, &[]).unwrap_err();
    assert_eq!(refusal.key, "aqm");
    assert!(refusal.must.contains("fq_codel"), "{}", refusal.must);
    assert!(
        refusal.must.ends_with("\"blue\" runs on: sim, datapath"),
        "{}",
        refusal.must
    );
}

#[test]
fn limits_are_counted_as_the_kernel_counts_them() {
    let fields = Options::Fields(15_140_u32.to_ne_bytes().into());
    assert_eq!(options("bfifo", Some(Limit::Packets(10)), &[]), Ok(fields));
    for (aqm, limit) in [
        ("codel", Limit::Bytes(1)),
        ("pfifo", Limit::Packets(1 << 32)),
    ] {
        assert_eq!(options(aqm, Some(limit), &[]).unwrap_err().key, "limit");
    }
}

/// A description as the kernel sends it: gnet_stats_queue (qlen, backlog, drops, requeues, overlimits) and the discipline's own.
fn described(queue: [u32; 5], own: &Attributes, options: &[u8]) -> Vec<u8> {
    let queue: Vec<u8> = queue.iter().flat_map(|field| field.to_ne_bytes()).collect();
    let statistics = Attributes::new().put(3, &queue).with(own.clone());
    let all = Attributes::new().put(2, options).nest(7, &statistics);
    all.as_bytes().into()
}

fn application(fields: &[u32]) -> Attributes {
    let bytes: Vec<u8> = fields
        .iter()
        .flat_map(|field| field.to_ne_bytes())
        .collect();
    Attributes::new().put(4, &bytes)
}

/// tc_codel_xstats: maxpacket, count, lastcount, ldelay, drop_next, drop_overlimit, ecn_mark, dropping, ce_mark.
#[test]
fn counters_are_read_from_the_kernels_structures() {
    let codel = described(
        [3, 4542, 225, 0, 0],
        &application(&[1514, 2, 1, 5000, 0, 25, 7, 0, 4]),
        &[],
    );
    assert_eq!(
        counters("codel", &codel),
        Some(Counters {
            dropped: 225,
            overflow: 25,
            marked: Some(11),
            backlog_packets: 3,
            probability: None,
        })
    );
    // tc_pie_xstats: prob in eight bytes, delay, rates, packets_in, dropped, overlimit, maxq, ecn_mark.
    let pie = described(
        [0, 0, 4, 0, 0],
        &application(&[0, 1 << 30, 19, 0, 0, 9, 3, 1, 77, 6]),
        &[],
    );
    let counted = counters("pie", &pie).unwrap();
    assert_eq!(
        (counted.probability, counted.overflow, counted.marked),
        (Some(0.25), 1, Some(6))
    );
    assert_eq!(counters("codel", &[]), None);
}

#[test]
fn all_drops_of_a_fifo_are_overflow_drops() {
    let counted = counters(
        "pfifo",
        &described([0, 0, 225, 0, 0], &Attributes::new(), &[]),
    )
    .unwrap();
    assert_eq!(
        (counted.overflow, counted.dropped, counted.marked),
        (225, 225, None)
    );
    // DualPI2 counts those for lack of room as overlimits.
    let dualpi2 = described([0, 0, 9, 0, 2], &application(&[0; 12]), &[]);
    assert_eq!(
        counters("dualpi2", &dualpi2).map(|counted| counted.overflow),
        Some(2)
    );
}

/// TCA_CAKE_STATS_TIN_STATS is 10, of a tin TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS 8.
#[test]
fn marks_of_all_tins_add_up() {
    let tin = |marks| Attributes::new().u32(2, 100).u32(8, marks);
    let tins = Attributes::new().nest(1, &tin(2)).nest(2, &tin(3));
    let own = Attributes::new().nest(4, &Attributes::new().u32(4, 1).nest(10, &tins));
    let counted = counters("cake", &described([0, 0, 4, 0, 0], &own, &[])).unwrap();
    assert_eq!(
        (counted.marked, counted.dropped, counted.overflow),
        (Some(5), 4, 0)
    );
}

/// The counters of tc_sfq_qopt_v1 are its last six fields: drops, forced drops, marks, forced marks, and marks at the head.
#[test]
fn sfq_counts_in_its_options() {
    let mut options = vec![0_u32; 12];
    options.extend([5, 1, 7, 2, 4, 3]);
    let bytes: Vec<u8> = options
        .iter()
        .flat_map(|field| field.to_ne_bytes())
        .collect();
    let counted = counters(
        "sfq_red",
        &described([0, 0, 10, 0, 0], &Attributes::new(), &bytes),
    )
    .unwrap();
    assert_eq!((counted.overflow, counted.marked), (4, Some(16)));
}

/// DualPI2's parameters are the kernel's attributes, in its units (linux/pkt_sched.h).
#[test]
fn dualpi2_has_units_of_its_own() {
    let settings = [
        ("target", millis(10)),
        ("alpha", Value::Number(0.16)),
        ("min_thresh", Value::Duration(Duration::from_micros(800))),
        ("min_qlen_step", Value::Count(3)),
        ("coupling_factor", Value::Number(2.0)),
        ("c_protection", Value::Number(0.1)),
        ("range", millis(0)),
        ("variant", word("linux")),
    ];
    let expected = Attributes::new()
        .u32(1, 500)
        .u32(3, 10_000)
        .u32(5, 41)
        .u32(8, 800)
        .u32(9, 3)
        .put(10, &[2])
        .put(13, &[10]);
    assert_eq!(
        options("dualpi2", Some(Limit::Packets(500)), &settings),
        Ok(Options::Attributes(expected))
    );
    assert_eq!(numbers("dualpi2", None, &[]), Ok(vec![(1, 10_000)]));
    for (key, value) in [
        ("coupling_factor", Value::Number(2.5)),
        ("range", millis(1)),
        ("scheduler", word("ts_fifo")),
        ("t_shift", millis(50)),
    ] {
        assert_eq!(
            options("dualpi2", None, &[(key, value)]).unwrap_err().key,
            key
        );
    }
}
