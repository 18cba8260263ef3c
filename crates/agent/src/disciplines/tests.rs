use sojourn_experiment::derived::Limit;
use sojourn_experiment::model::Queue;
use sojourn_units::{Duration, Rate, Value};

use super::*;

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
    }
}

fn arguments(
    aqm: &str,
    limit: Option<Limit>,
    settings: &[(&str, Value)],
) -> Result<String, Refusal> {
    leaf(&arm(aqm, settings), limit, FRAME, Rate::from_mbps(10)).map(|leaf| match leaf.encoding {
        Encoding::TcArguments(arguments) => arguments,
        Encoding::Attributes(kind, options) => format!("{kind} {options:?}"),
    })
}

fn millis(millis: u64) -> Value {
    Value::Duration(Duration::from_millis(millis))
}

fn word(word: &str) -> Value {
    Value::Word(word.into())
}

#[test]
fn keys_become_arguments_of_tc() {
    let limit = Some(Limit::Packets(1000));
    assert_eq!(
        arguments(
            "codel",
            limit,
            &[
                ("target", millis(5)),
                ("interval", millis(100)),
                ("ecn", Value::Flag(true))
            ]
        ),
        Ok("codel limit 1000 target 5ms interval 100ms ecn".into())
    );
    assert_eq!(
        arguments(
            "pie",
            limit,
            &[
                ("target", millis(20)),
                ("tupdate", millis(30)),
                ("variant", word("linux"))
            ]
        ),
        Ok("pie limit 1000 target 20ms tupdate 30ms".into())
    );
    assert_eq!(
        arguments("fq_codel", None, &[("flows", Value::Count(64))]),
        Ok("fq_codel flows 64".into())
    );
}

/// `tc-red(8)`: burst defaults to (2·min + max) / (3·avpkt) = (25000 + 37500) / 3000 = 20 packets.
#[test]
fn ared_sets_parameters_that_tc_requires() {
    let (min, max) = (Value::Bytes(12_500), Value::Bytes(37_500));
    assert_eq!(
        arguments("ared", Some(Limit::Bytes(150_000)), &[("min", min), ("max", max)]),
        Ok("red limit 150000 min 12500 max 37500 avpkt 1000 burst 20 bandwidth 10000000bit adaptive".into())
    );
}

/// 10 Mbit/s × 20 ms = 25000 B: thresholds at 0.5 and 1.5 times that (Floyd et al. 2001, section 4).
#[test]
fn a_target_sets_the_thresholds_of_adaptive_red() {
    let arguments = arguments("ared", None, &[("target", millis(20))]).unwrap();
    assert!(arguments.contains("min 12500 max 37500"), "{arguments}");
    // The default limit of 1000 packets, in bytes.
    assert!(arguments.starts_with("red limit 1514000 "), "{arguments}");
}

/// RFC 8033's alpha of 0.125 per second is 2 sixteenths in the kernel.
#[test]
fn gains_of_pie_are_sixteenths_in_the_kernel() {
    let (alpha, beta) = (
        ("alpha", Value::Number(0.125)),
        ("beta", Value::Number(1.25)),
    );
    assert_eq!(
        arguments("pie", None, &[alpha.clone(), beta]),
        Ok("pie alpha 2 beta 20".into())
    );
    let linux = [("alpha", Value::Number(2.0)), ("variant", word("linux"))];
    assert_eq!(arguments("pie", None, &linux), Ok("pie alpha 2".into()));
    let odd = arguments("pie", None, &[("alpha", Value::Number(0.1))]).unwrap_err();
    assert_eq!(
        (odd.key.as_str(), odd.must.contains("sixteenths")),
        ("alpha", true)
    );
}

/// tc-choke(8): min and max in packets; bandwidth and limit are required. 30 kB are 19 frames of 1514 bytes.
#[test]
fn choke_gets_packets_and_a_rate() {
    let (min, max) = (("min", Value::Bytes(30_000)), ("max", Value::Packets(60)));
    assert_eq!(
        arguments("choke", None, &[min, max]),
        Ok("choke limit 1000 min 19 max 60 bandwidth 10000000bit".into())
    );
    let given = [("bandwidth", Value::Rate(Rate::from_mbps(5)))];
    assert_eq!(
        arguments("choke", None, &given),
        Ok("choke limit 1000 bandwidth 5000000bit".into())
    );
}

/// tc-sfb(8) has times in milliseconds. Its default steps are 0.0005 and 0.00005, ours are 0.001 and 0.001 / 6.
#[test]
fn sfb_gets_its_steps_except_in_the_variant_linux() {
    let steps = "increment 0.001 decrement 0.00016666666666666666";
    assert_eq!(
        arguments("sfb", Some(Limit::Packets(500)), &[]),
        Ok(format!("sfb limit 500 {steps}"))
    );
    let linux = [
        ("variant", word("linux")),
        ("rehash", millis(90_000)),
        ("increment", Value::Number(0.01)),
    ];
    assert_eq!(
        arguments("sfb", None, &linux),
        Ok("sfb increment 0.01 rehash 90000".into())
    );
    assert_eq!(
        arguments("sfb", None, &[("ecn", Value::Flag(false))])
            .unwrap_err()
            .key,
        "ecn"
    );
}

#[test]
fn pie_of_2013_gets_its_own_defaults() {
    assert_eq!(
        arguments(
            "pie",
            None,
            &[("target", millis(5)), ("variant", word("2013"))]
        ),
        Ok("pie tupdate 30ms dq_rate_estimator target 5ms".into())
    );
}

#[test]
fn only_the_kernels_fixed_values_are_accepted() {
    assert_eq!(
        arguments("pie", None, &[("max_burst", millis(150))]),
        Ok("pie".into())
    );
    let refusal = arguments("pie", None, &[("max_burst", millis(100))]).unwrap_err();
    assert_eq!(refusal.key, "max_burst");
    assert_eq!(refusal.must, "must be 150 ms, which Linux's pie fixes");
    assert_eq!(
        arguments("red", None, &[("gentle", Value::Flag(true))])
            .unwrap_err()
            .key,
        "gentle"
    );
    assert_eq!(
        arguments("codel", None, &[("ce_exclude", Value::Flag(true))])
            .unwrap_err()
            .key,
        "ce_exclude"
    );
}

#[test]
fn a_discipline_that_linux_lacks_is_refused_with_those_that_it_has() {
    let refusal = arguments("blue", None, &[]).unwrap_err();
    assert_eq!(refusal.key, "aqm");
    assert!(refusal.must.contains("fq_codel"), "{}", refusal.must);
    assert!(
        refusal.must.ends_with("\"blue\" runs on: sim"),
        "{}",
        refusal.must
    );
}

#[test]
fn limits_are_counted_as_the_kernel_counts_them() {
    assert_eq!(
        arguments("bfifo", Some(Limit::Packets(10)), &[]),
        Ok("bfifo limit 15140".into())
    );
    assert_eq!(
        arguments("pfifo", Some(Limit::Packets(83)), &[]),
        Ok("pfifo limit 83".into())
    );
    assert_eq!(
        arguments("codel", Some(Limit::Bytes(1)), &[])
            .unwrap_err()
            .key,
        "limit"
    );
    assert_eq!(
        arguments("pfifo", Some(Limit::Packets(1 << 32)), &[])
            .unwrap_err()
            .key,
        "limit"
    );
}

/// The output of tc 6.1, shortened.
const CODEL: &str =
    "qdisc htb 5d01: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 direct_qlen 1000
 Sent 17 bytes 3 pkt (dropped 9, overlimits 4 requeues 0)
 backlog 0b 0p requeues 0
qdisc codel 10: parent 5d01:1 limit 1000p target 5ms interval 100ms
 Sent 8446 bytes 59 pkt (dropped 225, overlimits 0 requeues 0)
 backlog 4542b 3p requeues 0
  count 2 lastcount 1 ldelay 5ms drop_next 0us
  maxpacket 1514 ecn_mark 7 drop_overlimit 25
";

#[test]
fn counters_are_those_of_the_leaf() {
    assert_eq!(
        counters("codel", "10:", CODEL),
        Some(Counters {
            dropped: 225,
            overflow: 25,
            marked: Some(7),
            backlog_packets: 3,
            probability: None,
        })
    );
    assert_eq!(counters("codel", "11:", CODEL), None);
    let with_threshold = CODEL.replace("drop_overlimit 25", "drop_overlimit 25 ce_mark 4");
    assert_eq!(
        counters("codel", "10:", &with_threshold).unwrap().marked,
        Some(11)
    );
}

#[test]
fn all_drops_of_a_fifo_are_overflow_drops() {
    let counted = counters("pfifo", "10:", CODEL).unwrap();
    assert_eq!((counted.overflow, counted.dropped), (225, 225));
}

#[test]
fn marks_of_all_tins_add_up_and_a_probability_is_read() {
    let cake = "qdisc cake 10: parent 1:1 bandwidth unlimited\n Sent 1 bytes 1 pkt (dropped 4, overlimits 0 requeues 0)\n backlog 0b 0p requeues 0\n                 Bulk  Best Effort\n  marks            2        3\n  ack_drop         9        9\n";
    assert_eq!(counters("cake", "10:", cake).unwrap().marked, Some(5));
    let pie = "qdisc pie 10: parent 1:1 limit 1000p\n Sent 1 bytes 1 pkt (dropped 4, overlimits 0 requeues 0)\n backlog 0b 0p requeues 0\n  prob 0.012 delay 19ms\n  pkts_in 9 overlimit 1 dropped 3 maxq 77 ecn_mark 0\n";
    let counted = counters("pie", "10:", pie).unwrap();
    assert_eq!(
        (counted.probability, counted.overflow, counted.dropped),
        (Some(0.012), 1, 4)
    );
}

/// DualPI2's parameters are the kernel's attributes, in its units (linux/pkt_sched.h).
#[test]
fn dualpi2_is_passed_as_attributes() {
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
    let encoding = |settings: &[(&str, Value)], limit| {
        leaf(&arm("dualpi2", settings), limit, FRAME, Rate::from_mbps(10)).map(|leaf| leaf.encoding)
    };
    let four = |number: u16, value: u32| (number, value.to_ne_bytes().to_vec());
    let options = vec![
        four(1, 500),
        four(3, 10_000),
        four(5, 41),
        four(8, 800),
        four(9, 3),
        (10, vec![2]),
        (13, vec![10]),
    ];
    let attributes = |options| Ok(Encoding::Attributes("dualpi2".into(), options));
    assert_eq!(
        encoding(&settings, Some(Limit::Packets(500))),
        attributes(options)
    );
    assert_eq!(encoding(&[], None), attributes(vec![four(1, 10_000)]));
    for (key, value) in [
        ("coupling_factor", Value::Number(2.5)),
        ("range", millis(1)),
        ("scheduler", word("ts_fifo")),
        ("t_shift", millis(50)),
    ] {
        assert_eq!(encoding(&[(key, value)], None).unwrap_err().key, key);
    }
}
