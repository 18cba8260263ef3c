//! Any file is read or refused in one line; there is never a panic.

mod common;

use common::{EXAMPLE, read_text, read_with};
use proptest::prelude::*;

fn is_read_or_refused_in_a_line(text: &str, overrides: &[(&str, &str)]) {
    if let Err(error) = read_with(text, overrides) {
        let message = error.to_string();
        assert_eq!(message.lines().count(), 1, "{message:?}");
        assert!(
            message.starts_with("load.toml:") || message.starts_with("--set "),
            "{message:?}"
        );
    }
}

/// Values of every TOML type, valid or not.
fn toml_value() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        any::<i64>().prop_map(|integer| integer.to_string()),
        any::<f64>().prop_map(|float| format!("{float:?}").replace("NaN", "nan")),
        any::<bool>().prop_map(|flag| flag.to_string()),
        r#"[0-9.]{0,22} ?(ns|us|ms|s|min|bit/s|Mbit/s|Gbit/s|B|kB|GiB|packets|bdp|)"#
            .prop_map(|quantity| format!("{quantity:?}")),
        r#"[0-9.]{0,4} ?(s|ms|)\.\.[0-9.]{0,4} ?(s|ms|)"#.prop_map(|range| format!("{range:?}")),
        prop::sample::select(&["codel", "red", "bulk", "cbr", "files", "both", "linux"][..])
            .prop_map(|word| format!("{word:?}")),
        Just("1979-05-27T07:32:00Z".to_string()),
        Just("0xffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff_ffff".to_string()),
    ];
    scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::btree_map("[a-z]{1,6}|rate|queue|aqm", inner, 0..3).prop_map(
                |entries| {
                    let entries = entries
                        .iter()
                        .map(|(key, value)| format!("{key} = {value}"));
                    format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
                }
            ),
        ]
    })
}

/// Keys of the format.
const KEYS: &[&str] = &[
    "experiment.name",
    "experiment.duration",
    "experiment.warmup",
    "experiment.repeat",
    "experiment.seed",
    "link",
    "link.rate",
    "link.rate.0",
    "link.delay",
    "link.buffer",
    "link.device_queue",
    "link.overhead",
    "link.framing",
    "link.mpu",
    "link.burst",
    "link.up",
    "link.up.queue",
    "queue",
    "queue.0",
    "queue.0.aqm",
    "queue.0.label",
    "queue.0.limit",
    "queue.0.target",
    "queue.0.variant",
    "traffic",
    "traffic.0.kind",
    "traffic.0.flows",
    "traffic.0.rtt",
    "traffic.0.start",
    "traffic.0.stop",
    "traffic.0.mss",
    "traffic.0.window",
    "traffic.0.size",
    "traffic.1.packet",
    "traffic.2.interval",
    "record",
    "record.series",
    "sweep",
    "sweep.link.rate",
    "sweep.queue.0",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_text(text in "\\PC*") {
        is_read_or_refused_in_a_line(&text, &[]);
    }

    #[test]
    fn any_bytes_that_are_text(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        is_read_or_refused_in_a_line(&String::from_utf8_lossy(&bytes), &[]);
    }

    #[test]
    fn the_example_with_a_piece_cut_out(from in 0..EXAMPLE.len(), length in 0_usize..200) {
        let upto = from.saturating_add(length).min(EXAMPLE.len());
        let left = String::from_utf8_lossy(&EXAMPLE.as_bytes()[..from]).into_owned();
        let right = String::from_utf8_lossy(&EXAMPLE.as_bytes()[upto..]).into_owned();
        is_read_or_refused_in_a_line(&(left + &right), &[]);
    }

    #[test]
    fn any_value_at_any_key(
        key in prop::sample::select(KEYS),
        value in toml_value(),
        other in prop::sample::select(KEYS),
        text in "\\PC{0,20}",
    ) {
        is_read_or_refused_in_a_line(EXAMPLE, &[(key, &value)]);
        is_read_or_refused_in_a_line(EXAMPLE, &[(key, &value), (other, &text)]);
    }

    #[test]
    fn any_key(key in "[a-z0-9.\\n\"]{0,30}", value in toml_value()) {
        is_read_or_refused_in_a_line(EXAMPLE, &[(&key, &value)]);
    }
}

#[test]
fn deep_nesting_does_not_exhaust_the_stack() {
    let deep = 100_000;
    let key = vec!["a"; deep].join(".");
    for text in [
        format!("a = {}", "[".repeat(deep)),
        format!("a = {}{}", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}", "{ a = ".repeat(deep)),
        format!("{key} = 1"),
        format!("[{key}]\nb = 1"),
    ] {
        assert!(read_text(&text).is_err());
    }
    assert!(read_with(EXAMPLE, &[(&key, "1")]).is_err());
    assert!(read_with(EXAMPLE, &[(&format!("sweep.{key}"), "[1]")]).is_err());
}

#[test]
fn a_byte_order_mark_and_crlf_are_accepted() {
    let text = format!("\u{feff}{}", EXAMPLE.replace('\n', "\r\n"));
    assert_eq!(read_text(&text), read_text(EXAMPLE));
}
