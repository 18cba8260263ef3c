use sojourn_experiment::{DisciplineKeys, KeySpec, Names as Known, Source, read};
use sojourn_units::Kind as KeyKind;

use super::*;
use crate::disciplines::Options;
use crate::job::Action;
use crate::netlink::number;
use crate::shaper::Scheduler;

/// An experiment from its text, with a few known disciplines.
fn experiment(text: &str) -> Experiment {
    let key = |name: &str, kind| KeySpec {
        name: name.into(),
        kind,
        default: "none".into(),
        doc: String::new(),
    };
    let discipline = |name: &str| DisciplineKeys {
        name: name.into(),
        keys: vec![
            key("target", KeyKind::Duration),
            key("max_burst", KeyKind::Duration),
        ],
    };
    let names = Known {
        disciplines: ["codel", "pie", "blue", "pfifo", "cake"]
            .map(discipline)
            .into(),
        congestion_controls: ["cubic", "reno", "dctcp", "prague", "scalable"]
            .map(str::to_owned)
            .into(),
    };
    let source = Source { name: "test", text };
    let plan = read(source, &[], &names).unwrap();
    Experiment::clone(&plan.cells[0].experiment)
}

const BASE: &str = r#"
experiment = { duration = "10 s", warmup = "2 s" }
queue = [{ aqm = "codel" }]
link = { rate = [["0 s", "10 Mbit/s"], ["5 s", "1 Mbit/s"]], buffer = "1000 packets", delay = "10 ms" }
traffic = [
    { kind = "bulk", flows = 2, tcp = "reno", rtt = "100 ms", ecn = true, mss = "500 B", window = "1 MB", direction = "both" },
    { kind = "ping", interval = "1 s", rtt = "40 ms" },
]
"#;

fn compiled(text: &str) -> Result<Job, Refusal> {
    job(&experiment(text), 0, 1, "t")
}

/// What is added to devices, with the namespace of each.
fn added(job: &Job) -> Vec<(&str, &Scheduler)> {
    job.setup
        .iter()
        .filter_map(|step| match (&step.namespace, &step.action) {
            (Some(namespace), Action::Add(scheduler)) => Some((namespace.as_str(), scheduler)),
            _ => None,
        })
        .collect()
}

/// The first addition of this kind to a namespace.
fn first<'a>(job: &'a Job, namespace: &str, kind: &str) -> Option<&'a Scheduler> {
    let mut all = added(job).into_iter();
    all.find(|(place, scheduler)| *place == namespace && scheduler.kind == kind)
        .map(|(_, scheduler)| scheduler)
}

/// The latency in tc_netem_qopt, in ticks of 64 ns, as milliseconds.
fn latency_ms(netem: &Scheduler) -> f64 {
    let Options::Fields(fields) = &netem.options else {
        panic!("netem has a structure");
    };
    number::<4>(fields, 0).expect("a latency") as f64 * 64e-6
}

#[test]
fn delays_are_on_the_receivers_egress_and_on_the_last_hop() {
    let job = compiled(BASE).unwrap();
    let delays: Vec<(&str, &str, f64)> = added(&job)
        .into_iter()
        .filter(|(_, scheduler)| scheduler.kind == "netem")
        .map(|(namespace, netem)| (namespace, netem.device.as_str(), latency_ms(netem)))
        .collect();
    // Of 100 ms the link has 10 ms; path 0 goes down, path 1 up, path 2 (40 ms) down. What comes back waits nowhere else.
    assert_eq!(
        delays,
        [
            ("t-far0", "f0", 90.0),
            ("t-remote", "rf0", 10.0),
            ("t-near1", "n1", 90.0),
            ("t-router", "rn1", 10.0),
            ("t-far2", "f2", 30.0),
            ("t-remote", "rf2", 10.0),
        ]
    );
}

/// Without a delay of the link the hosts of the first group do both. They send data at once, which is band 0 here and band
/// 1 there, and acknowledge late.
#[test]
fn data_and_acknowledgements_of_a_host_have_bands() {
    let job = compiled(&with_link("delay = \"0 s\"")).unwrap();
    let priorities: Vec<[u32; 2]> = job.flows.iter().map(|flow| flow.priorities).collect();
    let (one, two) = (0x5c00_0001, 0x5c00_0002);
    assert_eq!(
        priorities,
        [[one, one], [one, one], [two, two], [two, two], [0, 0]]
    );
    let late = first(&job, "t-far0", "netem").expect("a delay");
    assert_eq!(late.parent, one);
    // A connection that is not accepted yet acknowledges late, too, though it has no priority.
    for (host, late) in [("t-near0", 1), ("t-far0", 0)] {
        let bands = first(&job, host, "prio").expect("bands");
        let Options::Fields(fields) = &bands.options else {
            panic!("prio has a structure");
        };
        assert_eq!(fields[4..], [late; 16], "{host}");
    }
}

#[test]
fn the_discipline_is_the_leaf_of_a_shaper_that_follows_the_schedule() {
    let job = compiled(BASE).unwrap();
    let experiment = experiment(BASE);
    let port = Port::of(
        &experiment.links,
        Hop {
            link: 0,
            way: Way::Down,
        },
    );
    let class = |rate| topology::class(&port, rate, &experiment.links[0]);
    let router: Vec<&Scheduler> = added(&job)
        .into_iter()
        .filter(|(namespace, scheduler)| *namespace == "t-router" && scheduler.device == "sj-down")
        .map(|(_, scheduler)| scheduler)
        .collect();
    assert_eq!(router.len(), 3);
    assert_eq!(
        (router[0].handle, router[0].kind.as_str()),
        (0x5d01_0000, "htb")
    );
    assert_eq!(router[1], &class(Rate::from_mbps(10)));
    assert_eq!(
        (router[2].parent, router[2].handle, router[2].kind.as_str()),
        (0x5d01_0001, 0x0010_0000, "codel")
    );
    assert!(
        first(&job, "t-remote", "htb").is_none(),
        "no queue in the reverse direction"
    );
    assert_eq!(
        job.bottlenecks[0].rate_changes,
        [(5_000_000_000, class(Rate::from_mbps(1)))]
    );
    assert_eq!(job.bottlenecks[0].handle, 0x5d01_0000);
}

#[test]
fn the_reverse_direction_is_shaped_if_the_experiment_has_its_rate() {
    let text = BASE.replace(
        "delay = \"10 ms\"",
        "up = { rate = \"2 Mbit/s\", queue = { aqm = \"pie\" } }",
    );
    let job = compiled(&text).unwrap();
    assert_eq!(job.bottlenecks[1].aqm, "pie");
    let pie = first(&job, "t-remote", "pie").expect("a queue");
    assert_eq!((pie.device.as_str(), pie.parent), ("sj-up", 0x5d02_0001));
}

#[test]
fn links_count_their_overhead() {
    for (overhead, beyond) in [("38 B", 24), ("14 B", 0)] {
        let text = BASE.replace("delay =", &format!("overhead = \"{overhead}\", delay ="));
        let job = compiled(&text).unwrap();
        let root = first(&job, "t-router", "htb").expect("a shaper");
        assert_eq!(root.overhead, beyond, "{overhead}");
    }
}

/// A host that sends has the first window and least timeout of its flows, one that receives the largest window.
#[test]
fn routes_carry_the_settings_of_tcp() {
    let job = compiled(BASE).unwrap();
    let routes: Vec<(&str, [Option<u32>; 3])> = job
        .setup
        .iter()
        .filter_map(|step| match &step.action {
            Action::Route(route) => Some((
                step.namespace.as_deref()?,
                [route.initial_window, route.min_rto_ms, route.window],
            )),
            _ => None,
        })
        .filter(|(namespace, _)| namespace.ends_with('0') || namespace.ends_with('1'))
        .collect();
    assert_eq!(
        routes,
        [
            ("t-near0", [Some(10), Some(200), None]),
            ("t-far0", [None, None, Some(1_000_000)]),
            ("t-near1", [None, None, Some(1_000_000)]),
            ("t-far1", [Some(10), Some(200), None]),
        ]
    );
}

#[test]
fn flows_go_between_the_hosts_of_their_path_and_start_as_in_the_simulator() {
    let text = BASE.replace("rtt = \"100 ms\"", "rtt = \"100 ms\", start = \"0..1 s\"");
    let experiment = experiment(&text);
    let job = job(&experiment, 0, 7, "t").unwrap();
    let ends: Vec<(&str, &str)> = job
        .flows
        .iter()
        .map(|flow| (flow.sender.as_str(), flow.receiver.as_str()))
        .collect();
    let (down, up) = (("t-near0", "t-far0"), ("t-far1", "t-near1"));
    assert_eq!(ends, [down, down, up, up, ("t-near2", "t-far2")]);
    let starts: Vec<u64> = derived::flows(&experiment, 7)
        .map(|flow| flow.start.as_nanos())
        .collect();
    assert_eq!(
        job.flows
            .iter()
            .map(|flow| flow.start_ns)
            .collect::<Vec<_>>(),
        starts
    );
    assert!(starts[0] != starts[1] && starts[0] < 1_000_000_000);
}

#[test]
fn segments_are_limited_with_their_timestamps_and_ecn_is_a_sysctl() {
    let job = compiled(BASE).unwrap();
    let tcp = job.flows[0].tcp.as_ref().unwrap();
    // 500 bytes of payload and 12 of timestamps.
    assert_eq!((tcp.max_segment, tcp.ecn), (Some(512), true));
    let tcp_ecn = |job: &Job| {
        job.setup.iter().find_map(|step| match &step.action {
            Action::Sysctl(values) if step.namespace.as_deref() == Some("t-near0") => values
                .iter()
                .find(|(key, _)| key == "net/ipv4/tcp_ecn")
                .map(|(_, value)| value.clone()),
            _ => None,
        })
    };
    assert_eq!(tcp_ecn(&job).as_deref(), Some("1"));
    let accurate = compiled(&BASE.replace("ecn = true", "ecn = true, accecn = true")).unwrap();
    assert_eq!(tcp_ecn(&accurate).as_deref(), Some("3"));
    // RFC 9331 §4.2: Prague needs accurate feedback, so that its host's listener accepts AccECN.
    let prague = compiled(&BASE.replace("reno", "prague")).unwrap();
    assert_eq!(tcp_ecn(&prague).as_deref(), Some("3"));
    assert_eq!(
        job.modules,
        [
            "inet_diag",
            "sch_codel",
            "sch_htb",
            "sch_netem",
            "tcp_diag",
            "veth"
        ],
        "reno is no module"
    );
}

/// Unsent data of all flows together must not put the kernel's TCP under memory pressure.
#[test]
fn many_flows_keep_less_unsent_each() {
    let unsent = |flows: u32| {
        let job = compiled(&BASE.replace("flows = 2", &format!("flows = {flows}"))).unwrap();
        let mut settings = job.setup.iter().filter_map(|step| match &step.action {
            Action::Sysctl(values) => values
                .iter()
                .find(|(key, _)| key == "net/ipv4/tcp_notsent_lowat"),
            _ => None,
        });
        settings.next().map(|(_, value)| value.clone())
    };
    assert_eq!(unsent(40).as_deref(), Some("262144"));
    // With the ping, 1000 flows.
    assert_eq!(unsent(999).as_deref(), Some("16777"));
}

#[test]
fn data_that_the_receiver_requests_comes_from_a_port_at_the_sender() {
    let text = BASE.replace(
        "{ kind = \"ping\", interval = \"1 s\", rtt = \"40 ms\" }",
        "{ kind = \"web\", rtt = \"40 ms\" }, { kind = \"video\", direction = \"up\", rtt = \"40 ms\" }",
    );
    let job = compiled(&text).unwrap();
    let ends: Vec<(&str, String, u16)> = job
        .flows
        .iter()
        .map(|flow| (flow.sender.as_str(), flow.address.to_string(), flow.port()))
        .collect();
    assert_eq!(ends[0], ("t-near0", "10.2.0.1".into(), 10_000));
    assert_eq!(ends[4], ("t-near2", "10.1.2.1".into(), 38_004));
    assert_eq!(ends[5], ("t-far3", "10.2.3.1".into(), 38_005));
}

/// Namespaces and addresses of senders and receivers, by flow.
fn hosts_of(job: &Job) -> Vec<(String, String, String)> {
    let hosts = job.flows.iter().map(|flow| {
        let named = |name: &str| name.trim_start_matches("t-").to_owned();
        (
            named(&flow.sender),
            named(&flow.receiver),
            flow.address.to_string(),
        )
    });
    hosts.collect()
}

const TWO_PCS: &str = r#"
experiment = { duration = "10 s" }
queue = [{ aqm = "pfifo" }]
link = [
    { name = "wan", from = "server", to = "router", rate = "50 Mbit/s" },
    { name = "lan1", from = "router", to = "pc1", rate = "1 Gbit/s" },
    { name = "lan2", from = "router", to = "pc2", rate = "1 Gbit/s" },
]
traffic = [
    { kind = "bulk", flows = 2, rtt = "20 ms", from = "server", to = "pc1" },
    { kind = "bulk", rtt = "40 ms", from = "server", to = "pc1" },
    { kind = "ping", rtt = "20 ms", from = "server", to = "pc2" },
]
"#;

#[test]
fn traffic_of_a_node_has_one_address() {
    let job = compiled(TWO_PCS).unwrap();
    let host = |to: &str, address: &str| ("near0".to_owned(), to.to_owned(), address.to_owned());
    let pc1 = host("far0", "10.2.0.1");
    assert_eq!(
        hosts_of(&job),
        [pc1.clone(), pc1.clone(), pc1, host("far2", "10.2.2.1")]
    );
    // The RTTs of 20 and 40 ms are bands of one host.
    let priorities: Vec<u32> = job.flows.iter().map(|flow| flow.priorities[1]).collect();
    assert_eq!(priorities, [0x5c00_0001, 0x5c00_0001, 0x5c00_0002, 0]);
    let namespaces: Vec<&str> = job.namespaces.iter().map(String::as_str).collect();
    let nodes = ["t-node-server", "t-node-router", "t-node-pc1", "t-node-pc2"];
    assert_eq!(
        namespaces,
        [&nodes[..], &["t-near0", "t-far0", "t-far2"]].concat()
    );
}

#[test]
fn traffic_behind_a_link_has_the_address_of_its_host() {
    let text = r#"
        experiment = { duration = "10 s" }
        queue = [{ aqm = "pfifo" }]
        link = { rate = "50 Mbit/s" }
        traffic = [
            { kind = "bulk", rtt = "20 ms", host = "pc" },
            { kind = "bulk", rtt = "20 ms" },
            { kind = "bulk", rtt = "20 ms", host = "pc" },
        ]
    "#;
    let ends = hosts_of(&compiled(text).unwrap());
    let receivers: Vec<&str> = ends
        .iter()
        .map(|(_, receiver, _)| receiver.as_str())
        .collect();
    assert_eq!(receivers, ["far0", "far1", "far0"]);
    let senders: Vec<&str> = ends.iter().map(|(sender, ..)| sender.as_str()).collect();
    assert_eq!(senders, ["near0", "near1", "near2"]);
}

/// A namespace has one setting for SACK. CAKE would see two hosts, other disciplines do not look.
#[test]
fn hosts_that_need_two_settings_are_two_unless_the_discipline_knows_hosts() {
    let text = TWO_PCS.replacen("rtt = \"40 ms\"", "rtt = \"40 ms\", sack = false", 1);
    let receivers = |job: &Job| {
        hosts_of(job)
            .into_iter()
            .map(|(_, to, _)| to)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        receivers(&compiled(&text).unwrap()),
        ["far0", "far0", "far1", "far2"]
    );
    let cake = text.replace("pfifo", "cake");
    assert_eq!(compiled(&cake).unwrap_err().key, "traffic.1");
    // Both ways over a delay: what comes back to a host that receives, too, would wait for it.
    let cake = BASE.replace("\"codel\"", "\"cake\"");
    assert_eq!(compiled(&cake).unwrap_err().key, "traffic.0");
}

#[test]
fn datagrams_have_room_for_their_number() {
    for (packet, accepted) in [("7 B", false), ("8 B", true)] {
        for kind in ["cbr", "onoff"] {
            let text = BASE.replace(
                "{ kind = \"ping\", interval = \"1 s\",",
                &format!("{{ kind = \"{kind}\", rate = \"8 kbit/s\", packet = \"{packet}\","),
            );
            assert_eq!(compiled(&text).is_ok(), accepted, "{kind} of {packet}");
        }
    }
}

#[test]
fn a_refusal_names_the_key_in_the_file() {
    let key = |text: &str| compiled(text).unwrap_err().key;
    assert_eq!(key(&BASE.replace("\"codel\"", "\"blue\"")), "queue.0.aqm");
    assert_eq!(
        key(&BASE.replace("\"codel\"", "\"pie\", max_burst = \"1 ms\"")),
        "queue.0.max_burst"
    );
    assert_eq!(key(&BASE.replace("1000 packets", "150 kB")), "link.buffer");
    assert_eq!(
        key(&BASE.replace("\"codel\"", "\"codel\", limit = \"150 kB\"")),
        "queue.0.limit"
    );
    let up = BASE.replace(
        "delay = \"10 ms\"",
        "up = { rate = \"2 Mbit/s\", queue = { aqm = \"blue\" } }",
    );
    assert_eq!(key(&up), "link.up.queue.aqm");
    for refused in [
        "device_queue = \"10 packets\"",
        "framing = \"ptm\"",
        "mpu = \"64 B\"",
    ] {
        let named = refused.split(' ').next().unwrap();
        let text = BASE.replace("delay =", &format!("{refused}, delay ="));
        assert_eq!(key(&text), format!("link.{named}"));
    }
    assert_eq!(key(&BASE.replace("flows = 2", "flows = 14000")), "traffic");
    let slow = BASE.replace("\"1 Mbit/s\"", "\"7 bit/s\"");
    assert_eq!(key(&slow), "link.rate");
    for point in ["sender", "receiver"] {
        let with_it = format!("{BASE}\nrecord = {{ pcap = \"{point}\" }}");
        assert_eq!(key(&with_it), "record.pcap");
    }
    for (one_key, value) in [
        ("abe", "true"),
        ("abe", "0.7"),
        ("beta", "0.7"),
        ("quickack", "false"),
        ("ack_every", "20"),
        ("gso", "false"),
        ("min_rto", "'1500 us'"),
        ("access", "'100 Mbit/s'"),
    ] {
        let with_it = format!("ecn = true, {one_key} = {value}");
        assert_eq!(
            key(&BASE.replace("ecn = true", &with_it)),
            format!("traffic.0.{one_key}")
        );
    }
}

#[test]
fn a_job_reads_back_from_its_json() {
    let job = compiled(BASE).unwrap();
    let text = serde_json::to_string(&job).unwrap();
    assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), job);
}

#[test]
fn bulk_flows_connect_two_round_trips_ahead() {
    let opens = |text: &str| -> Vec<Option<i64>> {
        let job = compiled(text).unwrap();
        job.flows.iter().map(|flow| flow.opens_ns).collect()
    };
    // Two flows each way, and a ping, which has no connection.
    let ahead = Some(-200_000_000);
    assert_eq!(opens(BASE), [ahead, ahead, ahead, ahead, None]);
    let later = BASE.replace("\"both\"", "\"down\", start = \"3 s\"");
    assert_eq!(opens(&later)[0], Some(2_800_000_000));
    // The exchange would fill a window of one segment and so double it.
    let small = BASE.replace("\"both\"", "\"both\", initial_window = 1");
    assert_eq!(opens(&small), [None; 5]);
}

#[test]
fn a_note_tells_that_round_trip_times_are_smoothed() {
    let with = |record: &str| notes(&experiment(&format!("{BASE}\nrecord = {{ {record} }}")));
    assert!(with("packets = true, pcap = true, one_way = true").is_empty());
    let notes = with("rtt = true, rtt_of = \"segments\"");
    assert_eq!(notes.len(), 1);
    assert!(notes[0].ends_with("not the time of every segment"));
}

/// Linux has a module of the name, which would run instead.
#[test]
fn a_users_congestion_control_is_refused() {
    let refusal = compiled(&BASE.replace("\"reno\"", "\"scalable\"")).unwrap_err();
    assert_eq!(refusal.key, "traffic.0.tcp");
    assert!(
        refusal.must.contains("one that a kernel has"),
        "{}",
        refusal.must
    );
}

/// BASE with more keys of its link.
fn with_link(keys: &str) -> String {
    BASE.replace("delay = \"10 ms\"", keys)
}

/// Without a queue upwards the way back begins at the far hosts.
#[test]
fn impairments_are_on_the_wires_behind_the_queues() {
    let impaired = |keys: &str| -> Vec<(String, u32)> {
        let job = compiled(&with_link(keys)).unwrap();
        let netems = added(&job).into_iter();
        let netems = netems.filter(|(_, netem)| netem::impairs(netem.handle).is_some());
        netems
            .map(|(namespace, netem)| (format!("{namespace} {}", netem.device), netem.handle))
            .collect()
    };
    let wires = [
        ("t-far0 f0", 0x5e01_0000),
        ("t-remote rf0", 0x5e00_0000),
        ("t-far1 f1", 0x5e01_0000),
        ("t-remote rf1", 0x5e00_0000),
        ("t-far2 f2", 0x5e01_0000),
        ("t-remote rf2", 0x5e00_0000),
    ];
    let wires = wires.map(|(place, handle)| (place.to_owned(), handle));
    assert_eq!(impaired("delay = \"10 ms\", loss = 0.01"), wires);
    let up = "delay = \"10 ms\", up = { rate = \"1 Mbit/s\", loss = 0.01 }";
    let wires = ["t-router rn0", "t-router rn1", "t-router rn2"];
    assert_eq!(impaired(up), wires.map(|place| (place.into(), 0x5e01_0000)));
}

#[test]
fn impairments_that_netem_cannot_have_are_refused_by_their_key() {
    for (keys, key) in [
        (
            "delay = [[\"0 s\", \"10 ms\"], [\"5 s\", \"20 ms\"]]",
            "link.delay",
        ),
        (
            "delay = \"10 ms\", reorder = { share = 0.1, by = \"5 ms\" }",
            "link.reorder",
        ),
        (
            "delay = \"10 ms\", reorder = { share = 0.1, by = \"10 ms\" }",
            "link.up.reorder",
        ),
        (
            "delay = \"10 ms\", jitter = \"1 ms\", up = { rate = \"1 Mbit/s\" }",
            "link.up.jitter",
        ),
    ] {
        let refusal = compiled(&with_link(keys)).unwrap_err();
        assert_eq!(refusal.key, key);
        assert!(
            refusal.must.contains("on Linux") && refusal.must.contains("sim"),
            "{}",
            refusal.must
        );
    }
}

#[test]
fn wifi_is_refused() {
    let text = r#"
        experiment = { duration = "10 s" }
        queue = [{ aqm = "codel" }]
        link = [{ kind = "wifi", name = "cell", standard = "802.11n", from = "ap", to = ["a", "b"] }]
        traffic = [{ kind = "bulk", rtt = "20 ms", from = "ap", to = "b" }]
    "#;
    let refusal = compiled(text).unwrap_err();
    assert_eq!(refusal.key, "link.cell.kind");
    assert!(
        refusal.must.ends_with("a Wi-Fi link needs sim"),
        "{}",
        refusal.must
    );
}

/// As `tc class add … parent 5d01:1 classid 5d01:3 htb`: the classes of the link below its own, a discipline in each without
/// classes below it, and a filter for each host.
#[test]
fn classes_of_the_link_stand_below_its_own() {
    let traffic = BASE.replace("rtt =", "class = \"gold-1\", rtt =");
    let tree = format!("{traffic}{TREE}");
    let job = compiled(&tree).unwrap();
    let router: Vec<(u32, u32, &str)> = added(&job)
        .into_iter()
        .filter(|(namespace, scheduler)| *namespace == "t-router" && scheduler.device == "sj-down")
        .map(|(_, of)| (of.parent & 0xffff, of.handle, of.kind.as_str()))
        .collect();
    let expected = [
        (0xffff, 0x5d01_0000, "htb"),
        (0, 0x5d01_0001, "htb"),
        (1, 0x5d01_0002, "htb"),
        (2, 0x5d01_0003, "htb"),
        (2, 0x5d01_0004, "htb"),
        (3, 0x0010_0000, "codel"),
        (4, 0x0011_0000, "codel"),
        (0, 0, "u32"),
        (0, 0, "u32"),
        (0, 0, "u32"),
    ];
    assert_eq!(router, expected);
    assert_eq!(job.bottlenecks[0].leaves, [0x0010_0000, 0x0011_0000]);
    assert!(job.modules.contains(&"cls_u32".to_owned()));
    let refusal =
        compiled(&tree.replace("rate = \"1 Mbit/s\"\nceil", "rate = \"11 Mbit/s\"\nceil"))
            .unwrap_err();
    assert_eq!(refusal.key, "class");
}

const TREE: &str = r#"
[[class]]
name = "site"
up = { rate = "1 Mbit/s" }
rate = "1 Mbit/s"
ceil = "11 Mbit/s"
[[class]]
name = "gold"
count = 2
parent = "site"
rate = "500 kbit/s"
"#;
