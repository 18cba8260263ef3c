//! The meaning of the file format: sections, defaults, overrides, sweeps.

mod common;

use common::{EVERY_KEY, EXAMPLE, read_text, read_with};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use sojourn_aqm::cake::framing::Cells;
use sojourn_experiment::model::{
    Abe, Buffer, Capacity, CapturePoint, Cbr, Direction, EchoProtocol, EcnField, Experiment, Files,
    Impaired, Kernel, Kind, Link, Outcome, Pace, Ping, Queue, Record, Recovery, Route, RttOf,
    Sizes, Tcp, Ties, Traffic, UpLink,
};
use sojourn_experiment::{InUse, resolved, resolved_with, traffic_kinds};
use sojourn_units::{Duration, Rate, Value};

/// A minimal file.
const SMALL: &str = r#"
experiment = { duration = "10 s" }
link = { rate = "10 Mbit/s" }
queue = [{ aqm = "pfifo" }]
traffic = [{ kind = "bulk", rtt = "40 ms" }]
"#;

const CUBIC: Tcp = Tcp {
    congestion_control: String::new(),
    ecn: false,
    accecn: false,
    ecn_fallback: true,
    beta: None,
    abe: Abe::Off,
    rtt_independence: true,
    sack: true,
    recovery: Recovery::Rack,
    min_rto: Duration::from_millis(200),
    quickack: true,
    ack_every: 2,
    gso: true,
    small_queues: true,
    initial_window: 10,
    mss: 1448,
    window: None,
};

fn cubic() -> Tcp {
    Tcp {
        congestion_control: "cubic".into(),
        ..CUBIC
    }
}

fn one(text: &str) -> Experiment {
    one_with(text, &[])
}

fn one_with(text: &str, overrides: &[(&str, &str)]) -> Experiment {
    let plan = read_with(text, overrides).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.cells.len(), 1);
    Experiment::clone(&plan.cells[0].experiment)
}

/// [`SMALL`] with other queues.
fn labels(queues: &str) -> Vec<String> {
    let text = SMALL.replace(r#"[{ aqm = "pfifo" }]"#, queues);
    one(&text)
        .queues
        .into_iter()
        .map(|queue| queue.label)
        .collect()
}

#[test]
fn the_documented_example_reads_as_described() {
    let plan = read_text(EXAMPLE).unwrap();
    assert_eq!(plan.cells.len(), 6);
    // 2 rates × 3 numbers of flows, one queue, five seeds each.
    assert_eq!(plan.runs(), 30);
    let ms = Duration::from_millis;
    let group = |kind, flows| Traffic {
        name: None,
        total: None,
        kind,
        route: Route::of_one_link(),
        flows,
        rtt: ms(100),
        start: (Duration::ZERO, Duration::ZERO),
        stop: Duration::from_secs(60),
        late_stop: None,
        direction: Direction::Down,
        dscp: 0,
        access: None,
        jitter: None,
        outcome: Outcome::default(),
        host: None,
        class: None,
    };
    let expected = Experiment {
        name: "four cubic flows".into(),
        duration: Duration::from_secs(60),
        warmup: Duration::from_secs(15),
        repeat: 5,
        kernel: Kernel::V6_1,
        ties: Ties::Arrivals,
        seed: 1,
        classes: Vec::new(),
        links: vec![Link {
            buffer: Some(Buffer::Packets(1000)),
            up: Some(UpLink {
                rate: Capacity::Steps(vec![(Duration::ZERO, Rate::from_mbps(1))]),
                buffer: None,
                queue: None,
                request_grant: None,
                impaired: Impaired::default(),
            }),
            ..Link::of_rate(Rate::from_mbps(1))
        }],
        queues: vec![Queue {
            aqm: "codel".into(),
            label: "CoDel 5 ms".into(),
            classes: true,
            up: None,
            limit: None,
            settings: vec![
                ("ecn".into(), Value::Flag(false)),
                ("target".into(), Value::Duration(ms(5))),
                ("interval".into(), Value::Duration(ms(100))),
            ],
        }],
        traffic: vec![
            group(Kind::Bulk(cubic()), 4),
            group(
                Kind::Cbr(Cbr {
                    rate: Rate::from_mbps(4),
                    packet: 1448,
                    mtu: None,
                    ecn: EcnField::NotEct,
                }),
                1,
            ),
            group(
                Kind::Ping(Ping {
                    interval: ms(100),
                    protocol: EchoProtocol::Icmp,
                    packet: 56,
                }),
                1,
            ),
        ],
        record: Record::default(),
    };
    assert_eq!(*plan.cells[0].experiment, expected);
}

#[test]
fn a_sweep_is_a_product_in_file_order_with_the_last_key_fastest() {
    let plan = read_text(EXAMPLE).unwrap();
    let seen: Vec<(u64, u32)> = plan
        .cells
        .iter()
        .map(|cell| {
            let experiment = &cell.experiment;
            (
                experiment.links[0].rate.nominal().as_bps() / 1_000_000,
                experiment.traffic[0].flows,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [(1, 4), (1, 16), (1, 64), (10, 4), (10, 16), (10, 64)]
    );
    // As written: text as text, numbers as numbers.
    assert_eq!(
        plan.cells[4].set,
        [
            ("link.rate".to_string(), json!("10 Mbit/s")),
            ("traffic.0.flows".to_string(), json!(16)),
        ]
    );
}

#[test]
fn swept_keys_need_no_quotes() {
    let quoted = format!("{SMALL}\n[sweep]\n\"link.rate\" = ['1 Mbit/s', '2 Mbit/s']\n");
    let bare = format!("{SMALL}\n[sweep]\nlink.rate = ['1 Mbit/s', '2 Mbit/s']\n");
    let cells = |text: &str| read_text(text).unwrap().cells;
    assert_eq!(cells(&quoted), cells(&bare));
    assert_eq!(cells(&bare).len(), 2);
}

#[test]
fn missing_keys_have_their_defaults() {
    let experiment = one(SMALL);
    assert_eq!(experiment.name, "load", "the file's stem");
    assert_eq!(experiment.warmup, Duration::ZERO);
    assert_eq!((experiment.repeat, experiment.seed), (1, 1));
    assert_eq!(experiment.links[0].buffer, None);
    assert_eq!(
        (experiment.links[0].overhead, experiment.links[0].burst),
        (14, 1600)
    );
    assert_eq!(experiment.links[0].up, None);
    assert_eq!(experiment.queues[0].label, "pfifo");
    assert_eq!(experiment.queues[0].settings, []);
    let traffic = &experiment.traffic[0];
    assert_eq!(traffic.kind, Kind::Bulk(cubic()));
    assert_eq!((traffic.flows, traffic.direction), (1, Direction::Down));
    assert_eq!(traffic.stop, Duration::from_secs(10), "the end of the run");
    assert_eq!(experiment.record, Record::default());
}

#[test]
fn every_key_is_read() {
    let experiment = one(EVERY_KEY);
    assert_eq!(experiment.seed, 7);
    assert_eq!(
        experiment.links[0],
        Link {
            name: "link".into(),
            nodes: None,
            queue: None,
            rate: Capacity::Steps(vec![
                (Duration::ZERO, Rate::from_mbps(100)),
                (Duration::from_secs(50), Rate::from_mbps(10)),
            ]),
            delay: Duration::from_millis(5),
            delays: Vec::new(),
            impaired: Impaired::default(),
            buffer: Some(Buffer::Bdp(0.5)),
            device_queue: 256,
            overhead: 38,
            cells: Cells::Atm,
            mpu: 64,
            burst: 0,
            up: Some(UpLink {
                rate: Capacity::Steps(vec![(Duration::ZERO, Rate::from_mbps(1))]),
                buffer: Some(Buffer::Bytes(30_000)),
                queue: Some(Queue {
                    aqm: "codel".into(),
                    label: "codel".into(),
                    classes: true,
                    up: None,
                    limit: None,
                    settings: vec![("target".into(), Value::Duration(Duration::from_millis(15)))],
                }),
                request_grant: None,
                impaired: Impaired::default(),
            }),
            wifi: None,
        }
    );
    assert_eq!(
        experiment.queues,
        [Queue {
            aqm: "red".into(),
            label: "red".into(),
            classes: true,
            up: None,
            limit: Some(Buffer::Bytes(150_000)),
            settings: vec![
                ("ecn".into(), Value::Flag(true)),
                ("min".into(), Value::Packets(30)),
                ("probability".into(), Value::Number(0.1)),
                ("weight".into(), Value::Number(0.002)),
                ("gentle".into(), Value::Flag(false)),
                ("bandwidth".into(), Value::Rate(Rate::from_mbps(10))),
            ],
        }]
    );
    assert_eq!(
        experiment.traffic,
        [Traffic {
            route: Route::of_one_link(),
            name: Some("homework".into()),
            total: None,
            kind: Kind::Files(Files {
                tcp: Tcp {
                    congestion_control: "reno".into(),
                    ecn: true,
                    accecn: false,
                    ecn_fallback: false,
                    beta: None,
                    abe: Abe::Recommended,
                    rtt_independence: false,
                    sack: false,
                    recovery: Recovery::Rfc6675,
                    min_rto: Duration::from_secs(1),
                    quickack: false,
                    ack_every: 20,
                    gso: false,
                    small_queues: false,
                    initial_window: 3,
                    mss: 8948,
                    window: Some(65_536),
                },
                sizes: Sizes::OneOf(vec![15_000, 44_000]),
                count: Some(12),
                pace: Pace::Think(Duration::from_secs(1)),
            }),
            flows: 1,
            rtt: Duration::from_millis(40),
            start: (Duration::from_millis(500), Duration::from_millis(1500)),
            stop: Duration::from_secs(30),
            late_stop: None,
            direction: Direction::Both,
            dscp: 46,
            access: Some(Rate::from_mbps(100)),
            jitter: None,
            outcome: Outcome::default(),
            host: None,
            class: None,
        }]
    );
    assert_eq!(
        experiment.record,
        Record {
            packets: true,
            medium: true,
            pcap: Some(CapturePoint::Receiver),
            qlog: false,
            rtt: true,
            rtt_of: RttOf::Segments,
            one_way: true,
            qoo: false,
            series: Some(Duration::from_millis(100)),
        }
    );
}

#[test]
fn a_range_of_starts_may_omit_the_first_unit() {
    let start = |start: &str| one_with(SMALL, &[("traffic.0.start", start)]).traffic[0].start;
    let ms = Duration::from_millis;
    assert_eq!(start("0..1 s"), (ms(0), ms(1000)));
    assert_eq!(start("0 s..1 s"), (ms(0), ms(1000)));
    assert_eq!(start("0.5..1.5 s"), (ms(500), ms(1500)));
    assert_eq!(start("200 ms .. 1s"), (ms(200), ms(1000)));
    assert_eq!(start("3 s"), (ms(3000), ms(3000)));
}

#[test]
fn traffic_stops_with_the_run_at_the_latest() {
    let shorter = one_with(
        SMALL,
        &[("traffic.0.stop", "10 s"), ("experiment.duration", "2 s")],
    );
    assert_eq!(shorter.traffic[0].stop, Duration::from_secs(2));
    assert_eq!(shorter.traffic[0].late_stop, Some(Duration::from_secs(10)));
}

#[test]
fn arms_of_one_discipline_are_labelled_by_their_differences() {
    assert_eq!(
        labels(r#"[{ aqm = "codel" }, { aqm = "codel", target = "20 ms" }, { aqm = "red" }]"#),
        ["codel", "codel target=20 ms", "red"]
    );
    assert_eq!(
        labels(
            r#"[{ aqm = "codel", ecn = true, target = "5 ms" },
                { aqm = "codel", ecn = true, target = "10 ms", limit = "9 packets" }]"#
        ),
        ["codel target=5 ms", "codel limit=9 packets target=10 ms"]
    );
    assert_eq!(
        labels(
            r#"[{ aqm = "pfifo", label = "codel" }, { aqm = "codel", variant = "linux" },
                { aqm = "red", label = "mine" }, { aqm = "red" }]"#
        ),
        ["codel", "codel variant=linux", "mine", "red"]
    );
}

#[test]
fn overrides_need_no_quotes_and_may_create_keys() {
    let experiment = one_with(
        SMALL,
        &[
            ("link.rate", "10mbit"),
            ("experiment.repeat", "3"),
            ("experiment.name", "5"),
            ("queue.0", "{ aqm = 'codel' }"),
            ("queue.0.target", "\"10 ms\""),
            ("queue.0.ecn", "true"),
            ("link.up.rate", "1 Mbit/s"),
            ("record.packets", "true"),
        ],
    );
    assert_eq!(
        experiment.links[0].rate,
        Capacity::Steps(vec![(Duration::ZERO, Rate::from_mbps(10))])
    );
    assert_eq!(experiment.repeat, 3);
    assert_eq!(experiment.name, "5");
    assert_eq!(
        experiment.queues[0].settings,
        [
            ("ecn".to_string(), Value::Flag(true)),
            (
                "target".to_string(),
                Value::Duration(Duration::from_millis(10))
            ),
        ]
    );
    assert!(experiment.links[0].up.is_some() && experiment.record.packets);
    let schedule = r#"[["0 s", "2 Mbit/s"], ["1 s", "1 Mbit/s"]]"#;
    let scheduled = one_with(SMALL, &[("link.rate", schedule)]);
    assert_eq!(
        scheduled.links[0].rate,
        Capacity::Steps(vec![
            (Duration::ZERO, Rate::from_mbps(2)),
            (Duration::from_secs(1), Rate::from_mbps(1)),
        ])
    );
}

#[test]
fn an_override_of_a_swept_key_ends_its_sweep() {
    let plan = read_with(EXAMPLE, &[("link.rate", "5 Mbit/s")]).unwrap();
    let rates: Vec<Rate> = plan
        .cells
        .iter()
        .map(|cell| cell.experiment.links[0].rate.nominal())
        .collect();
    assert_eq!(rates, [Rate::from_mbps(5); 3]);
    let plan = read_with(EXAMPLE, &[("sweep.link.rate", "['5 Mbit/s']")]).unwrap();
    let rates: Vec<Rate> = plan
        .cells
        .iter()
        .map(|cell| cell.experiment.links[0].rate.nominal())
        .collect();
    assert_eq!(rates, [Rate::from_mbps(5); 3]);
}

#[test]
fn a_sweep_may_provide_a_missing_key() {
    let text = SMALL.replace("duration", "seed").replace("\"10 s\"", "2");
    let text = format!("{text}\n[sweep]\n'experiment.duration' = ['1 s', '2 s']\n");
    let plan = read_text(&text).unwrap();
    assert_eq!(plan.cells[1].experiment.duration, Duration::from_secs(2));
}

#[test]
fn discipline_defaults_are_written_after_given_keys() {
    let text = SMALL.replace(
        r#"[{ aqm = "pfifo" }]"#,
        r#"[{ aqm = "red", gentle = false }]"#,
    );
    let given = [
        ("gentle", Value::Flag(true)),
        ("limit", Value::Packets(1000)),
        ("min", Value::Bytes(30_000)),
    ];
    let in_use = InUse {
        queues: vec![given.map(|(key, value)| (key.into(), value)).to_vec()],
        ..InUse::default()
    };
    let queue = resolved_with(&one(&text), &in_use)["queue"][0].clone();
    assert_eq!(
        queue,
        json!({"aqm": "red", "label": "red", "limit": "1000 packets", "min": "30 kB", "gentle": false})
    );
}

/// JSON as a TOML value: the same but for the sign between key and value.
fn toml_value(json: &Json) -> String {
    match json {
        Json::Object(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| format!("{key:?} = {}", toml_value(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(", "))
        }
        scalar => scalar.to_string(),
    }
}

fn toml_file(json: &Json) -> String {
    let sections = json.as_object().unwrap().iter();
    let sections = sections.map(|(key, value)| format!("{key} = {}\n", toml_value(value)));
    sections.collect()
}

#[test]
fn every_kind_of_traffic_is_listed_with_its_keys() {
    let kinds = traffic_kinds();
    let named: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
    let expected = [
        "bulk",
        "cbr",
        "ping",
        "files",
        "onoff",
        "voip",
        "game",
        "call",
        "web",
        "video",
        "rrul",
        "rrul_be",
        "rtt_fair",
        "rtt_fair4be",
        "rtt_fair6be",
        "rtt_fair_up",
        "rtt_fair_var",
        "speed_test",
    ];
    assert_eq!(named, expected);
    let ping = [
        "kind",
        "name",
        "total",
        "from",
        "to",
        "host",
        "class",
        "via",
        "count",
        "flows",
        "rtt",
        "start",
        "stop",
        "direction",
        "dscp",
        "access",
        "qoo_p99",
        "qoo_p99_9",
        "qoo_loss",
        "qoo_rate",
        "interval",
        "protocol",
        "packet",
        "jitter",
    ];
    assert_eq!(kinds[2].keys, ping);
}

proptest! {
    #[test]
    fn an_experiment_written_out_reads_to_the_same(
        nanos in prop::array::uniform4(1_u64..1_000_000_000_000),
        counts in prop::array::uniform4(1_u64..100_000),
        bdp in 0.001_f64..1000.0,
        flags in any::<[bool; 4]>(),
    ) {
        let [duration, rtt, interval, think] = nanos.map(Duration::from_nanos);
        let [rate, packets, size, flows] = counts;
        let [ecn, sack, scheduled, both] = flags;
        let text = format!(r#"
[experiment]
duration = "{duration}"
[link]
rate = {}
buffer = "{bdp} bdp"
up = {{ rate = "{rate} bit/s", queue = {{ aqm = "codel", interval = "{interval}" }} }}
[[queue]]
aqm = "fq_codel"
ecn = {ecn}
limit = "{packets} packets"
memory_limit = "{size} B"
[[traffic]]
kind = "files"
flows = {flows}
rtt = "{rtt}"
size = "{size} B"
think = "{think}"
ecn = {ecn}
abe = {ecn}
sack = {sack}
direction = "{}"
[[traffic]]
kind = "ping"
interval = "{interval}"
rtt = "{rtt}"
"#,
            if scheduled {
                format!(r#"[["0 s", "{rate} kbit/s"], ["{rtt}", "{size} Mbit/s"]]"#)
            } else {
                format!("\"{rate} kbit/s\"")
            },
            if both { "both" } else { "up" },
        );
        let experiment = one(&text);
        prop_assert_eq!(&one(&toml_file(&resolved(&experiment))), &experiment);
    }
}

/// What is kept of a window: a share on a loss, and true, false or a share on a mark.
#[test]
fn a_loss_based_control_may_keep_another_share() {
    let tcp = |keys: &str| {
        let traffic = format!("traffic = [{{ kind = 'bulk', rtt = '10 ms', {keys} }}]");
        let text = format!(
            "experiment = {{ duration = '1 s' }}\nlink = {{ rate = '1 Mbit/s' }}\nqueue = [{{ aqm = 'pfifo' }}]\n{traffic}"
        );
        read_text(&text).map(|plan| {
            plan.cells[0].experiment.traffic[0]
                .kind
                .tcp()
                .cloned()
                .unwrap()
        })
    };
    let given = tcp("tcp = 'reno', ecn = true, abe = 0.7, beta = 0.6").unwrap();
    assert_eq!((given.abe, given.beta), (Abe::Keeps(0.7), Some(0.6)));
    let plain = tcp("tcp = 'cubic', ecn = true, abe = true").unwrap();
    assert_eq!((plain.abe, plain.beta), (Abe::Recommended, None));
    for (keys, told) in [
        (
            "ecn = true, abe = 1",
            "traffic.0.abe: got 1; must be true or false, or a number above 0 and at most 0.99",
        ),
        (
            "beta = 0",
            "traffic.0.beta: got 0; must be a number above 0 and at most 0.99",
        ),
        ("beta = '0.5'", "traffic.0.beta"),
        ("abe = 0.7", "traffic.0.abe: got 0.7; needs ecn = true"),
        (
            "tcp = 'bbr', ecn = true, abe = true",
            "traffic.0.abe: needs a tcp that keeps a fixed share",
        ),
        (
            "tcp = 'bbr', beta = 0.5",
            "traffic.0.beta: needs a tcp that keeps a fixed share",
        ),
    ] {
        let error = tcp(keys).unwrap_err().to_string();
        assert!(error.contains(told), "{keys}: {error}");
    }
    assert!(tcp("tcp = 'bbr', abe = false").is_ok());
}
