//! Each mistake gives one line: the place, the given value and the accepted values.

mod common;

use std::path::Path;

use common::{EXAMPLE, names, read_text, read_with};
use sojourn_experiment::model::Experiment;
use sojourn_experiment::read_file;
use sojourn_units::{Duration, Value};

/// A valid file; each case replaces a part of it.
const GOOD: &str = r#"[experiment]
duration = "10 s"
warmup = "1 s"
repeat = 2

[link]
rate = "10 Mbit/s"
delay = "5 ms"
buffer = "100 packets"

[[queue]]
aqm = "codel"
target = "5 ms"

[[traffic]]
kind = "bulk"
flows = 4
rtt = "40 ms"
start = "0 s"
"#;

fn message(text: &str, overrides: &[(&str, &str)]) -> String {
    match read_with(text, overrides) {
        Ok(_) => panic!("read without complaint:\n{text}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_bad_value_is_named_with_its_line() {
    assert!(read_text(GOOD).is_ok());
    let time = r#"a time like "5 ms" (ns, us, ms, s, min)"#;
    let rate = r#"a rate above zero like "10 Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s)"#;
    let capacity =
        format!(r#"{rate}, a schedule like [["0 s", "100 Mbit/s"]], or {{ trace = "file" }}"#);
    let size = r#"a size like "1000 packets", "150 kB", "250 ms" or "1 bdp""#;
    let cases: &[(&str, &str, String)] = &[
        // [experiment]
        (r#""10 s""#, "10", format!("2: experiment.duration: got 10; must be {time}")),
        (r#""10 s""#, r#""0 s""#, format!(
            "2: experiment.duration: got \"0 s\"; must be {}", time.replace("time", "time above zero"),
        )),
        (r#""10 s""#, r#""1000001 s""#,
            r#"2: experiment.duration: got "1000001 s"; must be at most "1000000 s""#.into()),
        (r#""10 s""#, "2026-01-01",
            format!("2: experiment.duration: got the date 2026-01-01; must be {time}")),
        (r#""1 s""#, r#""10 s""#,
            r#"3: experiment.warmup: got "10 s"; must be below experiment.duration ("10 s")"#.into()),
        ("repeat = 2", "repeat = 0",
            "4: experiment.repeat: got 0; must be a whole number from 1 to 100000".into()),
        ("repeat = 2", "repeat = 1.5",
            "4: experiment.repeat: got 1.5; must be a whole number from 1 to 100000".into()),
        ("repeat = 2", "repeat = 99999999999999999999",
            "4: experiment.repeat: got 99999999999999999999; must be a whole number from 1 to 100000".into()),
        ("repeat = 2", "seed = -1",
            "4: experiment.seed: got -1; must be a whole number from 0 to 4611686018427387904".into()),
        ("repeat = 2", "repeat = inf",
            "4: experiment.repeat: got inf; must be a whole number from 1 to 100000".into()),
        ("repeat = 2", "name = \"\"",
            "4: experiment.name: got \"\"; must be 1 to 200 characters of text on one line, without control characters".into()),
        // It would turn the rest of the line around.
        ("repeat = 2", "name = \"a\\u202Eb\"",
            "4: experiment.name: got \"a\\u{202e}b\"; must be 1 to 200 characters of text on one line, without control characters".into()),
        // [link]
        (r#""10 Mbit/s""#, r#""-1 Mbit/s""#, format!("7: link.rate: got \"-1 Mbit/s\"; must be {rate}")),
        (r#""10 Mbit/s""#, r#""0 Mbit/s""#, format!("7: link.rate: got \"0 Mbit/s\"; must be {rate}")),
        (r#""10 Mbit/s""#, "10", format!(
            "7: link.rate: got 10; must be {capacity}",
        )),
        (r#""10 Mbit/s""#, r#""2000 Gbit/s""#,
            r#"7: link.rate: got "2000 Gbit/s"; must be at most "1000 Gbit/s""#.into()),
        (r#""10 Mbit/s""#, r#"{ trace = "lte" }"#,
            r#"7: link.rate.trace: got "lte"; lte: cannot be read: No such file or directory (os error 2)"#.into()),
        (r#""10 Mbit/s""#, r#"{ file = "lte" }"#,
            "7: link.rate.file: unknown key; accepted by a trace: trace".into()),
        (r#""10 Mbit/s""#, r#"[["1 s", "1 Mbit/s"]]"#,
            r#"7: link.rate.0.0: got "1 s"; must be "0 s", the first instant of a schedule"#.into()),
        (r#""10 Mbit/s""#, "[\n[\"0 s\", \"1 Mbit/s\"],\n[\"0 s\", \"2 Mbit/s\"]]",
            r#"9: link.rate.1.0: got "0 s"; must be after the instant before it ("0 ms")"#.into()),
        (r#""10 Mbit/s""#, r#"[["0 s", "1 Mbit/s"], ["1 s", "0 bit/s"]]"#,
            r#"7: link.rate.1.1: got "0 bit/s"; must be above zero; a link that pauses is a trace with a gap, { trace = "file" }"#.into()),
        (r#""10 Mbit/s""#, r#"[["0 s"]]"#,
            r#"7: link.rate.0: got an array; must be a pair of a time and a rate like ["50 s", "10 Mbit/s"]"#.into()),
        (r#""10 Mbit/s""#, "[]", format!(
            "7: link.rate: got an empty array; must be {capacity}",
        )),
        (r#""100 packets""#, r#""0 packets""#,
            r#"9: link.buffer: got "0 packets"; must be at least "1 packet""#.into()),
        (r#""100 packets""#, r#""150""#, format!("9: link.buffer: got \"150\"; must be {size}")),
        (r#""100 packets""#, r#""0 bdp""#,
            r#"9: link.buffer: got "0 bdp"; must be above 0 and at most "10000 bdp""#.into()),
        // A full segment of 1448 bytes with 52 of headers and 14 of Ethernet.
        (r#""100 packets""#, r#""1513 B""#,
            r#"9: link.buffer: got "1513 B"; must be at least the largest frame of this traffic ("1514 B")"#.into()),
        (r#"delay = "5 ms""#, r#"overhead = "70 kB""#,
            r#"8: link.overhead: got "70 kB"; must be from "0 B" to "65535 B" (B, kB, MB, GB)"#.into()),
        (r#"delay = "5 ms""#, r#"framing = "atn""#,
            r#"8: link.framing: got "atn"; did you mean "atm"? accepted: noatm, atm, ptm"#.into()),
        (r#"delay = "5 ms""#, r#"up = { queue = { aqm = "pfifo" } }"#, format!(
            "8: link.up.rate: missing; must be {capacity}",
        )),
        (r#"delay = "5 ms""#, r#"device_queue = "1 kB""#,
            r#"8: link.device_queue: got "1 kB"; must be a number of packets like "256 packets""#.into()),
        // [[queue]]
        (r#"aqm = "codel""#, r#"aqm = "fq-codel""#,
            r#"12: queue.0.aqm: got "fq-codel"; did you mean "fq_codel"? accepted: pfifo, red, codel, fq_codel"#.into()),
        ("target =", "tarjet =",
            r#"13: queue.0.tarjet: unknown key; did you mean "target"? accepted by codel: aqm, label, limit, ecn, target, interval, variant, up, classes"#.into()),
        (r#"target = "5 ms""#, "target = \"5 mbit\"",
            format!("13: queue.0.target: got \"5 mbit\"; must be {time}")),
        (r#"target = "5 ms""#, "ecn = \"true\"",
            "13: queue.0.ecn: got \"true\"; must be true or false".into()),
        (r#"target = "5 ms""#, "variant = \"bsd\"",
            r#"13: queue.0.variant: got "bsd"; must be one of "rfc8289", "linux""#.into()),
        (r#"aqm = "codel""#, "",
            "11: queue.0.aqm: missing; must be the name of a discipline".into()),
        ("[[traffic]]", "[[queue]]\naqm = \"codel\"\ntarget = \"5000 us\"\n[[traffic]]",
            "15: queue.1: queue.0 is labelled \"codel\" as well; give each a label of its own".into()),
        // [[traffic]]
        (r#"kind = "bulk""#, r#"kind = "bulq""#,
            r#"16: traffic.0.kind: got "bulq"; did you mean "bulk"? accepted: bulk, cbr, ping, files, onoff, voip, game, call, web, video, rrul, rrul_be, rtt_fair, rtt_fair4be, rtt_fair6be, rtt_fair_up, rtt_fair_var, speed_test"#.into()),
        (r#"kind = "bulk""#, r#"kind = "cbr""#, format!("15: traffic.0.rate: missing; must be {rate}")),
        (r#"kind = "bulk""#, "kind = \"cbr\"\nrate = \"1 Mbit/s\"\ntcp = \"reno\"",
            "18: traffic.0.tcp: unknown key; accepted by cbr: kind, name, total, from, to, host, class, via, count, flows, rtt, start, stop, direction, dscp, access, qoo_p99, qoo_p99_9, qoo_loss, qoo_rate, rate, packet, mtu, ecn, jitter".into()),
        (r#"kind = "bulk""#, "kind = \"cbr\"\nrate = \"1 Mbit/s\"\npacket = \"65508 B\"",
            r#"18: traffic.0.packet: got "65508 B"; must be from "1 B" to "65507 B" (B, kB, MB, GB)"#.into()),
        (r#"kind = "bulk""#, "kind = \"cbr\"\nrate = \"1 Mbit/s\"\nmtu = \"67 B\"",
            r#"18: traffic.0.mtu: got "67 B"; must be from "68 B" to "65535 B" (B, kB, MB, GB)"#.into()),
        (r#"kind = "bulk""#, "kind = \"onoff\"\nrate = \"1 Mbit/s\"\nsend_buffer = \"64 kB\"",
            r#"18: traffic.0.send_buffer: got "64 kB"; must be left out: needs transport = "tcp" and a rate"#.into()),
        (r#"kind = "bulk""#, "kind = \"onoff\"\ntransport = \"tcp\"\nsend_buffer = \"64 kB\"",
            r#"18: traffic.0.send_buffer: got "64 kB"; must be left out: needs transport = "tcp" and a rate"#.into()),
        (r#"kind = "bulk""#,
            "kind = \"onoff\"\ntransport = \"tcp\"\nrate = \"1 Mbit/s\"\npacket = \"1500 B\"\nsend_buffer = \"1499 B\"",
            r#"20: traffic.0.send_buffer: got "1499 B"; must be at least a write, packet ("1500 B")"#.into()),
        (r#"kind = "bulk""#, "kind = \"bulk\"\nqoo_loss = \"1..101 %\"",
            r#"17: traffic.0.qoo_loss: got "1..101 %"; must be two shares from 0 to 100 %, the second above the first, like "0.1..2 %""#.into()),
        (r#"kind = "bulk""#, "kind = \"ping\"\ninterval = \"0 s\"", format!(
            "17: traffic.0.interval: got \"0 s\"; must be {}", time.replace("time", "time above zero"),
        )),
        (r#"kind = "bulk""#, "kind = \"files\"\nsize = []",
            r#"17: traffic.0.size: got an empty array; must be a size like "100 kB", an array of sizes, or a table with a distribution"#.into()),
        (r#"kind = "bulk""#, "kind = \"files\"\nsize = { distribution = \"pareto\", mean = \"1 kB\", shape = 1 }",
            "17: traffic.0.size.shape: got 1; must be a number above 1 and at most 100".into()),
        (r#"kind = "bulk""#, "kind = \"files\"\nsize = { distribution = \"pareto\", mean = \"1 kB\" }",
            "17: traffic.0.size.shape: missing; must be a number above 1 and at most 100".into()),
        (r#"kind = "bulk""#, "kind = \"files\"\nsize = { distribution = \"exponential\", median = \"1 kB\" }",
            "17: traffic.0.size.median: unknown key; did you mean \"mean\"? accepted by exponential: mean, distribution".into()),
        (r#"kind = "bulk""#, "kind = \"files\"\nsize = { distribution = \"uniform\", min = \"2 kB\", max = \"1 kB\" }",
            r#"17: traffic.0.size.max: got "1 kB"; must be at least min ("2 kB")"#.into()),
        (r#"kind = "bulk""#, "kind = \"files\"\nsize = \"1 kB\"\narrivals = 2\nthink = \"1 s\"",
            r#"19: traffic.0.think: got "1 s"; must be left out: with arrivals no file waits for another"#.into()),
        (r#"kind = "bulk""#, "kind = \"onoff\"", format!("15: traffic.0.rate: missing; must be {rate}")),
        (r#"kind = "bulk""#, "kind = \"onoff\"\nrate = \"1 Mbit/s\"\nmss = \"1 kB\"",
            r#"18: traffic.0.mss: got "1 kB"; must be left out: needs transport = "tcp""#.into()),
        (r#"kind = "bulk""#, "kind = \"web\"\nconnections = 5\nobjects = 3",
            "18: traffic.0.objects: got 3; must be left out: connections selects the PackMime model, which has its own".into()),
        (r#"kind = "bulk""#, "kind = \"video\"\nladder = [\"2 Mbit/s\", \"1 Mbit/s\"]",
            r#"17: traffic.0.ladder.1: got "1 Mbit/s"; must be above the rate before it ("2 Mbit/s")"#.into()),
        (r#"kind = "bulk""#, "kind = \"video\"\nbuffer = \"2 s\"",
            r#"17: traffic.0.buffer: a buffer of "2 s" cannot hold a segment of "4 s""#.into()),
        (r#"kind = "bulk""#, "kind = \"voip\"\ncodec = \"g711a\"",
            r#"17: traffic.0.codec: got "g711a"; did you mean "g711"? accepted: g711, g711_plc, g729a, g723_1, gsm_efr"#.into()),
        (r#"kind = "bulk""#, "kind = \"bulk\"\ndscp = 64",
            r#"17: traffic.0.dscp: got 64; must be a whole number from 0 to 63 or a name like "EF""#.into()),
        ("kind = \"bulk\"\nflows = 4\nrtt = \"40 ms\"", "kind = \"rtt_fair\"\nrtt = [\"10 ms\", \"20 ms\"]",
            r#"17: traffic.0.rtt: got an array; must be an array of 4 base RTTs like ["10 ms", "50 ms"], one per host"#.into()),
        ("start = \"0 s\"", "direction = \"both\"",
            "15: traffic.0: sends upwards without a limit; must have link.up with a rate, or a window".into()),
        ("kind = \"bulk\"\nflows = 4\nrtt = \"40 ms\"\nstart = \"0 s\"", "kind = \"rrul\"\nrtt = \"40 ms\"\nidle = \"20 s\"",
            r#"15: traffic.0: its load starts at "20 s"; must be before the end, experiment.duration ("10 s")"#.into()),
        ("kind = \"bulk\"\nflows = 4\nrtt = \"40 ms\"\nstart = \"0 s\"", "kind = \"rrul\"\nrtt = \"40 ms\"\nstop = \"4 s\"",
            r#"15: traffic.0: its load starts at "5 s"; must be before its stop ("4 s")"#.into()),
        (r#"kind = "bulk""#, "kind = \"files\"\nsize = [\"1 kB\", 3]",
            r#"17: traffic.0.size.1: got 3; must be from "1 B" to "1000 GB" (B, kB, MB, GB)"#.into()),
        ("flows = 4", "flows = 100001",
            "17: traffic.0.flows: got 100001; must be a whole number from 1 to 100000".into()),
        ("flows = 4", "tcp = \"vegas\"",
            r#"17: traffic.0.tcp: got "vegas"; accepted: reno, cubic, bbr"#.into()),
        ("flows = 4", "abe = true",
            "17: traffic.0.abe: got true; needs ecn = true, since it responds to marks".into()),
        ("flows = 4", "accecn = true",
            "17: traffic.0.accecn: got true; needs ecn = true, whose marks it reports".into()),
        ("flows = 4", "mss = \"63 B\"",
            r#"17: traffic.0.mss: got "63 B"; must be from "64 B" to "65495 B" (B, kB, MB, GB)"#.into()),
        ("flows = 4", "window = \"1 kB\"",
            r#"17: traffic.0.window: got "1 kB"; must be at least a segment, mss ("1448 B")"#.into()),
        ("flows = 4", "initial_window = 1001",
            "17: traffic.0.initial_window: got 1001; must be a whole number from 1 to 1000".into()),
        ("flows = 4", "direction = \"sideways\"",
            r#"17: traffic.0.direction: got "sideways"; accepted: down, up, both"#.into()),
        ("flows = 4", "stop = \"0 s\"", format!(
            "17: traffic.0.stop: got \"0 s\"; must be {}", time.replace("time", "time above zero"),
        )),
        ("flows = 4\nrtt = \"40 ms\"\nstart = \"0 s\"", "rtt = \"40 ms\"\nstart = \"0..2 s\"\nstop = \"2 s\"",
            r#"19: traffic.0.stop: got "2 s"; must be after start ("2 s")"#.into()),
        ("[[traffic]]", "[[traffic]]\nkind = \"ping\"\nrtt = \"40 ms\"\nname = \"bulk\"\n[[traffic]]",
            r#"18: traffic.0.name: traffic.1 is called "bulk" as well; give each a name of its own"#.into()),
        (r#"rtt = "40 ms""#, r#"rtt = "4 ms""#,
            r#"18: traffic.0.rtt: got "4 ms"; must be at least link.delay ("5 ms"), which is part of it"#.into()),
        (r#"rtt = "40 ms""#, r#"rtt = "-1 ms""#, format!(
            "18: traffic.0.rtt: got \"-1 ms\"; must be {}", time.replace("time", "time above zero"),
        )),
        (r#"start = "0 s""#, r#"stop = "-1 s""#, format!(
            "19: traffic.0.stop: got \"-1 s\"; must be {}", time.replace("time", "time above zero"),
        )),
        ("delay = \"5 ms\"", "delay = \"-5 ms\"",
            format!("8: link.delay: got \"-5 ms\"; must be {time}, not negative")),
        (r#"rtt = "40 ms""#, "", format!(
            "15: traffic.0.rtt: missing; must be {}", time.replace("time", "time above zero"),
        )),
        (r#"start = "0 s""#, r#"start = "10 s""#,
            r#"19: traffic.0.start: got "10 s"; must be before the end, experiment.duration ("10 s")"#.into()),
        (r#"start = "0 s""#, r#"start = "2..1 s""#,
            format!("19: traffic.0.start: got \"2..1 s\"; must be {time} or a range like \"0..1 s\"")),
        // [record]
        ("repeat = 2", "[record]\nrtt_of = \"segments\"",
            r#"5: record.rtt_of: got "segments"; must be left out: needs rtt = true"#.into()),
        ("repeat = 2", "[record]\nseries = \"1 ns\"",
            r#"5: record.series: got "1 ns"; must be wider: the run has more than 10000000 such bins"#.into()),
        ("repeat = 2", "[record]\nseries = \"11 s\"",
            r#"5: record.series: got "11 s"; must be at most experiment.duration ("10 s")"#.into()),
        // Values of the wrong structure.
        ("[link]", "[lnk]",
            r#"6: lnk: unknown key; did you mean "link"? accepted by an experiment file: experiment, link, class, queue, traffic, record, sweep, case"#.into()),
        ("[[queue]]", "[queue]",
            "11: queue: got a table; must be at least one table [[queue]] with an aqm".into()),
        // A version is no number: 6.10 is not 6.1.
        ("repeat = 2", "kernel = 6.10",
            r#"4: experiment.kernel: got 6.10; must be one of "6.1", "6.12", "6.18", "7.3""#.into()),
        ("repeat = 2", "repeat = 2\nrepeat = 3", "5: got `repeat = 3`; not TOML: duplicate key".into()),
        ("warmup", "\"a\\nb\"", r#"3: experiment."a\nb": unknown key; accepted by [experiment]: name, duration, warmup, repeat, seed, kernel, ties"#.into()),
    ];
    for (from, to, expected) in cases {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        assert_eq!(
            message(&text, &[]),
            format!("load.toml:{expected}"),
            "in\n{text}"
        );
    }
}

#[test]
fn a_missing_section_is_named() {
    let without = |section: &str| -> String {
        let blocks = GOOD
            .split("\n\n")
            .filter(|block| !block.trim_start().starts_with(section));
        blocks.collect::<Vec<_>>().join("\n\n")
    };
    for (section, expected) in [
        (
            "[experiment]",
            "experiment: missing; must be a table [experiment] with at least a duration",
        ),
        (
            "[link]",
            "link: missing; must be a table [link] with at least a rate, or tables [[link]]",
        ),
        (
            "[[queue]]",
            "queue: missing; must be at least one table [[queue]] with an aqm",
        ),
    ] {
        assert_eq!(
            message(&without(section), &[]),
            format!("load.toml: {expected}")
        );
    }
    let empty = message("", &[]);
    assert_eq!(
        empty,
        "load.toml: experiment: missing; must be a table [experiment] with at least a duration"
    );
}

#[test]
fn a_bad_override_is_named_as_an_override() {
    for (key, value, expected) in [
        (
            "queue.0.target",
            "200",
            r#"got 200; must be a time like "5 ms" (ns, us, ms, s, min)"#,
        ),
        (
            "queue.0.tarjet",
            "5 ms",
            r#"unknown key; did you mean "target"? accepted by codel: aqm, label, limit, ecn, target, interval, variant, up, classes"#,
        ),
        (
            "queue.1.target",
            "5 ms",
            r#"queue has no entry "1"; it has 1, counted from 0"#,
        ),
        (
            "queue.x",
            "5 ms",
            r#"queue has no entry "x"; it has 1, counted from 0"#,
        ),
        (
            "link.rate.now",
            "5 ms",
            "unknown key; accepted by a trace: trace",
        ),
        (
            "link..rate",
            "5 ms",
            "not a dotted key such as link.rate, queue.0.target or sweep.link.rate",
        ),
        (
            "",
            "5 ms",
            "not a dotted key such as link.rate, queue.0.target or sweep.link.rate",
        ),
        (
            "sweep.\"link.rate",
            "['5 Mbit/s']",
            "not a dotted key such as link.rate, queue.0.target or sweep.link.rate",
        ),
        (
            "sweep.\"link.rate\"",
            "['0 Mbit/s']",
            "link.rate: got \"0 Mbit/s\"; must be a rate above zero like \"10 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s)",
        ),
        (
            "link.rate",
            "9e18 bit/s",
            "got \"9e18 bit/s\"; must be a rate above zero like \"10 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s), its number written with at most 15 digits and without an exponent",
        ),
        (
            "link.buffer",
            "1000000000000000000000 packets",
            "got \"1000000000000000000000 packets\"; must be a size like \"1000 packets\", \"150 kB\", \"250 ms\" or \"1 bdp\", its number written with at most 15 digits and without an exponent",
        ),
        (
            "link.up.buffer",
            "1 packet",
            "link.up.rate: missing; must be a rate above zero like \"10 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s), a schedule like [[\"0 s\", \"100 Mbit/s\"]], or { trace = \"file\" }",
        ),
        (
            "sweep.link.rate",
            "5 Mbit/s",
            "got \"5 Mbit/s\"; must be an array of the values to run",
        ),
        (
            "sweep.link.rate",
            "['0 Mbit/s']",
            "link.rate: got \"0 Mbit/s\"; must be a rate above zero like \"10 Mbit/s\" (bit/s, kbit/s, Mbit/s, Gbit/s)",
        ),
    ] {
        let key_shown = match key {
            "" => "\"\"",
            "sweep.\"link.rate" => "'sweep.\"link.rate'",
            "sweep.\"link.rate\"" => "'sweep.\"link.rate\"'",
            _ => key,
        };
        assert_eq!(
            message(GOOD, &[(key, value)]),
            format!("--set {key_shown}: {expected}")
        );
    }
}

#[test]
fn a_bad_sweep_is_named_with_key_and_value() {
    // GOOD has 19 lines; the swept key is on line 21.
    for (sweep, expected) in [
        (
            "'link.rate' = ['1 Mbit/s', '0 Mbit/s']",
            r#"21: sweep.link.rate: got "0 Mbit/s"; must be a rate above zero like "10 Mbit/s" (bit/s, kbit/s, Mbit/s, Gbit/s)"#,
        ),
        (
            "'link.rat' = ['1 Mbit/s']",
            r#"21: sweep.link.rat: unknown key; did you mean "rate"? accepted by [link]: rate, delay, buffer, device_queue, overhead, framing, mpu, burst, up, loss, jitter, reorder, duplicate, corrupt"#,
        ),
        (
            "'lnk.rate' = ['1 Mbit/s']",
            r#"21: sweep.lnk.rate: lnk: unknown key; did you mean "link"? accepted by an experiment file: experiment, link, class, queue, traffic, record, sweep, case"#,
        ),
        (
            "'queue.3.target' = ['1 ms']",
            r#"21: sweep.queue.3.target: queue has no entry "3"; it has 1, counted from 0"#,
        ),
        (
            "'link.rate' = '1 Mbit/s'",
            r#"21: sweep.link.rate: got "1 Mbit/s"; must be an array of the values to run"#,
        ),
        (
            "'link.rate' = []",
            "21: sweep.link.rate: got an empty array; must be an array of the values to run",
        ),
        (
            "'traffic.0.flows' = [4, 4]",
            "21: sweep.traffic.0.flows: got 4 twice; must be different values",
        ),
        (
            "'link.rate' = ['1 Mbit/s']\nlink.rate = ['2 Mbit/s']",
            "22: sweep.link.rate: given twice",
        ),
        (
            "'sweep.link.rate' = [1]",
            "21: sweep.sweep.link.rate: a sweep cannot be swept",
        ),
        // Each value is valid, the combination is not: the message names both.
        (
            "'experiment.duration' = ['2 s', '1 s']",
            r#"3: experiment.warmup: got "1 s"; must be below experiment.duration ("1 s") (in the sweep, with experiment.duration = "1 s")"#,
        ),
        (
            "'experiment.duration' = ['2 s', '1 s']\n'traffic.0.flows' = [1, 2]",
            r#"3: experiment.warmup: got "1 s"; must be below experiment.duration ("1 s") (in the sweep, with experiment.duration = "1 s")"#,
        ),
    ] {
        let text = format!("{GOOD}[sweep]\n{sweep}\n");
        assert_eq!(message(&text, &[]), format!("load.toml:{expected}"));
    }
    // Wrong even without the sweep, so the message does not blame the sweep.
    let text = format!("{GOOD}[sweep]\n'traffic.0.flows' = [1, 2]\n").replace("5 ms", "5 parsecs");
    assert_eq!(
        message(&text, &[]),
        "load.toml:8: link.delay: got \"5 parsecs\"; must be a time like \"5 ms\" (ns, us, ms, s, min)"
    );
    let text = format!("sweep = 3\n{GOOD}");
    assert_eq!(
        message(&text, &[]),
        "load.toml:1: sweep: got 3; must be a table [sweep] of dotted keys"
    );
}

#[test]
fn errors_found_by_the_caller_have_a_place() {
    let must = "must be below interval (\"100 ms\")";
    let plan = read_text(GOOD).unwrap();
    let said = |key| plan.refuse(0, key, must, |_| true).to_string();
    assert_eq!(
        said("queue.0.target"),
        format!("load.toml:13: queue.0.target: got \"5 ms\"; {must}")
    );
    assert_eq!(
        said("queue.0.interval"),
        format!("load.toml:11: queue.0.interval: not given; {must}")
    );
    let set = read_with(GOOD, &[("queue.0.target", "200 ms")]).unwrap();
    assert_eq!(
        set.refuse(0, "queue.0.target", must, |_| true).to_string(),
        format!("--set queue.0.target: got \"200 ms\"; {must}")
    );
    // The message names the swept keys that the mistake depends on, and no other.
    let sweep = "[sweep]\n'traffic.0.flows' = [1, 2]\n'queue.0.target' = ['5 ms', '200 ms']\n";
    let swept = read_text(&format!("{GOOD}{sweep}")).unwrap();
    let is_long = |experiment: &Experiment| {
        let target = Value::Duration(Duration::from_millis(200));
        experiment.queues[0]
            .settings
            .contains(&("target".into(), target))
    };
    let said = |key| swept.refuse(1, key, must, is_long).to_string();
    assert_eq!(
        said("queue.0.target"),
        format!("load.toml:22: sweep.queue.0.target: got \"200 ms\"; {must}")
    );
    let not_given = format!("load.toml:11: queue.0.interval: not given; {must}");
    assert_eq!(
        said("queue.0.interval"),
        format!("{not_given} (in the sweep, with queue.0.target = \"200 ms\")")
    );
    let whatever_is_swept = swept.refuse(1, "queue.0.interval", must, |_| true);
    assert_eq!(whatever_is_swept.to_string(), not_given);
}

#[test]
fn more_than_a_million_runs_are_refused() {
    let seeds: Vec<String> = (0..100).map(|seed| seed.to_string()).collect();
    let seeds = seeds.join(", ");
    let axis = |key: &str| format!("'{key}' = [{seeds}]\n");
    let text = format!("{GOOD}[sweep]\n{}", axis("experiment.seed"));
    let refused = |runs: &str| {
        format!(
            "load.toml: asks for {runs} runs (sweep × queues × repeat); must be at most 1000000"
        )
    };
    assert_eq!(
        read_with(&text, &[("experiment.repeat", "10000")])
            .unwrap()
            .runs(),
        1_000_000
    );
    let over = message(&text, &[("experiment.repeat", "10001")]);
    assert_eq!(over, refused("1000100"), "as soon as it is known");
    // 100^4 combinations are counted, not read.
    let keys = ["a", "b", "c", "d"].map(axis);
    assert_eq!(
        message(&format!("{GOOD}[sweep]\n{}", keys.concat()), &[]),
        refused("100000000")
    );
}

#[test]
fn endless_and_oversized_files_are_refused() {
    let trace = |path: &str| {
        let rate = format!("{{ trace = '{path}' }}");
        message(GOOD, &[("link.rate", &rate)])
    };
    let refused = |path: &str, what: &str| {
        format!("--set link.rate: link.rate.trace: got \"{path}\"; {path}: {what}")
    };
    let device = "got a device, a pipe or a socket; must be a file";
    assert_eq!(trace("/dev/zero"), refused("/dev/zero", device));
    assert_eq!(
        trace("/tmp"),
        refused("/tmp", "got a directory; must be a file")
    );
    // A sparse file: it takes no disk space.
    let large = std::env::temp_dir().join(format!("sojourn-large-{}", std::process::id()));
    let file = std::fs::File::create(&large).unwrap();
    file.set_len(10_000_000_000).unwrap();
    let path = large.to_str().unwrap();
    let (as_trace, as_experiment) = (
        trace(path),
        read_file(&large, &[], &names()).unwrap_err().to_string(),
    );
    std::fs::remove_file(&large).unwrap();
    assert_eq!(
        as_trace,
        refused(path, r#"got more than "100 MB"; must be at most that"#)
    );
    let most = r#"got more than "1 MB"; must be at most that"#;
    assert_eq!(as_experiment, format!("{path}: {most}"));
    let endless = read_file(Path::new("/dev/zero"), &[], &names()).unwrap_err();
    assert_eq!(endless.to_string(), format!("/dev/zero: {device}"));
    let text = format!("{GOOD}# {}", "x".repeat(1_000_000));
    assert_eq!(message(&text, &[]), format!("load.toml: {most}"));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = std::env::temp_dir();
    let message = |path: &Path| read_file(path, &[], &names()).unwrap_err().to_string();
    let missing = directory.join("sojourn-no-such-file.toml");
    assert!(message(&missing).starts_with(&format!("{}: cannot be read: ", missing.display())));

    let latin = directory.join(format!("sojourn-latin1-{}.toml", std::process::id()));
    std::fs::write(&latin, b"# na\xefve\n").unwrap();
    let said = message(&latin);
    std::fs::write(&latin, b"\x1f\x8b\x08\x00").unwrap();
    let compressed = message(&latin);
    std::fs::write(&latin, EXAMPLE).unwrap();
    let plan = read_file(&latin, &[], &names());
    std::fs::remove_file(&latin).unwrap();
    assert_eq!(
        said,
        format!("{}: not UTF-8 text (byte 4)", latin.display())
    );
    assert_eq!(
        compressed,
        format!(
            "{}: compressed by gzip; must be unpacked, as text",
            latin.display()
        )
    );
    assert_eq!(plan.unwrap().cells.len(), 6);
}
