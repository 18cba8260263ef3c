//! Kinds of traffic: the meaning of their keys, and the groups of Flent's tests.

mod common;

use std::path::PathBuf;

use common::{names, read_text};
use serde_json::Value as Json;
use sojourn_experiment::derived::group_names;
use sojourn_experiment::model::{
    Browsing, Capacity, Codec, Direction, EchoProtocol, Experiment, Kind, Pace, Sizes, Times,
    Traffic, Transport,
};
use sojourn_experiment::{read_file, resolved};
use sojourn_units::{Duration, Rate};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn experiment(traffic: &str) -> Experiment {
    let text = format!(
        r#"
experiment = {{ duration = "60 s" }}
link = {{ rate = "10 Mbit/s", up = {{ rate = "1 Mbit/s" }} }}
queue = [{{ aqm = "pfifo" }}]
[[traffic]]
{traffic}"#
    );
    let plan = read_text(&text).unwrap_or_else(|error| panic!("{error}"));
    Experiment::clone(&plan.cells[0].experiment)
}

fn group(traffic: &str) -> Traffic {
    let mut experiment = experiment(traffic);
    assert_eq!(experiment.traffic.len(), 1);
    experiment.traffic.remove(0)
}

#[test]
fn a_call_uses_g711_by_default() {
    let voip = |keys: &str| match group(&format!("kind = 'voip'\nrtt = '40 ms'\n{keys}")).kind {
        Kind::Voip(voip) => (voip.codec, voip.packet, voip.interval),
        other => panic!("{other:?}"),
    };
    // 64 kbit/s are 160 bytes per 20 ms, plus 12 of RTP.
    assert_eq!(voip(""), (Codec::G711, 172, MS(20)));
    assert_eq!(voip("codec = 'g729a'"), (Codec::G729a, 32, MS(20)));
    assert_eq!(
        voip("packet = '92 B'\ninterval = '10 ms'"),
        (Codec::G711, 92, MS(10))
    );
}

#[test]
fn a_game_runs_in_both_directions_and_other_traffic_downstream() {
    assert_eq!(
        group("kind = 'game'\nrtt = '40 ms'").direction,
        Direction::Both
    );
    assert_eq!(
        group("kind = 'web'\nrtt = '40 ms'").direction,
        Direction::Down
    );
}

#[test]
fn a_group_has_its_name_or_else_that_of_its_kind() {
    let names = |traffic: &str| group_names(&experiment(traffic));
    let bulk = "kind = 'bulk'\nrtt = '40 ms'\n";
    let more = format!("[[traffic]]\n{bulk}");
    assert_eq!(names(bulk), ["bulk"]);
    assert_eq!(names(&format!("{bulk}{more}")), ["bulk 0", "bulk 1"]);
    assert_eq!(
        names(&format!("{bulk}{more}name = 'movie'\n")),
        ["bulk", "movie"]
    );
    let test = "kind = 'rtt_fair_var'\nrtt = ['40 ms', '90 ms']\nname = 'far and near'";
    let expected =
        ["bulk 0", "bulk 1", "ping 2", "ping 3"].map(|part| format!("far and near {part}"));
    assert_eq!(names(test), expected);
}

#[test]
fn a_code_point_is_a_number_or_a_name() {
    let dscp = |value: &str| group(&format!("kind = 'bulk'\nrtt = '40 ms'\ndscp = {value}")).dscp;
    assert_eq!(
        [dscp("'EF'"), dscp("'CS1'"), dscp("'AF42'"), dscp("5")],
        [46, 8, 36, 5]
    );
}

#[test]
fn files_have_distributed_sizes_and_arrive_independently() {
    let files = |keys: &str| match group(&format!("kind = 'files'\nrtt = '40 ms'\n{keys}")).kind {
        Kind::Files(files) => (files.sizes, files.pace),
        other => panic!("{other:?}"),
    };
    let pareto = Sizes::Pareto {
        mean: 50_000,
        shape: 1.2,
    };
    assert_eq!(
        files("size = { distribution = 'pareto', mean = '50 kB', shape = 1.2 }\narrivals = 2.5"),
        (pareto, Pace::Arrivals(2.5))
    );
    let lognormal = Sizes::Lognormal {
        median: 10_000,
        sigma: 2.0,
    };
    assert_eq!(
        files(
            "size = { distribution = 'lognormal', median = '10 kB', sigma = 2 }\nthink = '9500 ms'"
        ),
        (lognormal, Pace::Think(MS(9500)))
    );
}

#[test]
fn web_is_pages_or_the_packmime_model() {
    let browsing = |keys: &str| match group(&format!("kind = 'web'\nrtt = '40 ms'\n{keys}")).kind {
        Kind::Web(web) => web.browsing,
        other => panic!("{other:?}"),
    };
    assert_eq!(browsing("connections = 5"), Browsing::PackMime(5.0));
    match browsing("objects = 3") {
        Browsing::Pages(pages) => assert_eq!((pages.objects, pages.parallel), (3, 6)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn on_off_traffic_runs_over_udp_or_tcp() {
    let onoff = |keys: &str| match group(&format!("kind = 'onoff'\nrtt = '40 ms'\n{keys}")).kind {
        Kind::OnOff(onoff) => onoff,
        other => panic!("{other:?}"),
    };
    let udp = onoff("rate = '1 Mbit/s'");
    assert_eq!(udp.transport, Transport::Udp(Rate::from_mbps(1)));
    assert_eq!(
        (udp.on, udp.off, udp.times),
        (MS(1000), MS(1000), Times::Exponential)
    );
    let tcp = onoff("transport = 'tcp'\ntcp = 'reno'\ntimes = 'fixed'");
    assert!(
        matches!(&tcp.transport, Transport::Tcp(tcp, None) if tcp.congestion_control == "reno")
    );
    assert_eq!(tcp.times, Times::Fixed);
}

/// Groups as (kind, code point, direction, base RTT in ms, start in ms).
fn shape(experiment: &Experiment) -> Vec<(String, u8, Direction, u64, u64)> {
    let shape = |group: &Traffic| {
        let kind = match &group.kind {
            Kind::Ping(ping) if ping.protocol == EchoProtocol::Udp => "udp ping".into(),
            kind => kind.name().to_string(),
        };
        let (rtt, start) = (group.rtt.as_millis(), group.start.0.as_millis());
        (kind, group.dscp, group.direction, rtt, start)
    };
    experiment.traffic.iter().map(shape).collect()
}

#[test]
fn rrul_is_four_flows_each_way_with_their_code_points_and_four_probes() {
    let bulk = |dscp| ("bulk".to_string(), dscp, Direction::Both, 40, 5000);
    let udp = |dscp| ("udp ping".to_string(), dscp, Direction::Down, 40, 0);
    let icmp = ("ping".to_string(), 0, Direction::Down, 40, 0);
    let made = experiment("kind = 'rrul'\nrtt = '40 ms'");
    let load = [bulk(0), bulk(8), bulk(40), bulk(46)];
    let probes = [icmp.clone(), udp(0), udp(8), udp(46)];
    assert_eq!(shape(&made), [load, probes].concat());
    assert!(
        made.traffic
            .iter()
            .all(|group| group.flows == 1 && group.stop == MS(60_000))
    );

    let made = experiment("kind = 'rrul_be'\nrtt = '40 ms'\ntcp = 'reno'");
    let load = [bulk(0), bulk(0), bulk(0), bulk(0)];
    assert_eq!(
        shape(&made),
        [load, [icmp, udp(0), udp(0), udp(0)]].concat()
    );
    assert_eq!(
        made.traffic[0].kind.tcp().unwrap().congestion_control,
        "reno"
    );
}

#[test]
fn rtt_fairness_has_a_host_per_base_rtt() {
    let rtts = "rtt = ['10 ms', '50 ms', '200 ms', '500 ms']\nidle = '0 s'";
    let expected = |marks: [u8; 4], direction| {
        let hosts = [10, 50, 200, 500];
        let load = hosts
            .iter()
            .zip(marks)
            .map(|(rtt, dscp)| ("bulk".to_string(), dscp, direction, *rtt, 0));
        let pings = hosts
            .iter()
            .map(|rtt| ("ping".to_string(), 0, Direction::Down, *rtt, 0));
        load.chain(pings).collect::<Vec<_>>()
    };
    for (kind, marks, direction) in [
        ("rtt_fair", [0, 0, 8, 8], Direction::Both),
        ("rtt_fair4be", [0; 4], Direction::Both),
        ("rtt_fair_up", [0; 4], Direction::Up),
        ("rtt_fair_var", [0; 4], Direction::Both),
    ] {
        let made = experiment(&format!("kind = '{kind}'\n{rtts}"));
        assert_eq!(shape(&made), expected(marks, direction), "{kind}");
    }
}

/// As TOML, which is nearly JSON.
fn written_out(experiment: &Experiment) -> String {
    fn value(json: &Json) -> String {
        match json {
            Json::Array(items) => format!(
                "[{}]",
                items.iter().map(value).collect::<Vec<_>>().join(", ")
            ),
            Json::Object(table) => {
                let pairs: Vec<String> = table
                    .iter()
                    .map(|(key, item)| format!("{key} = {}", value(item)))
                    .collect();
                format!("{{ {} }}", pairs.join(", "))
            }
            plain => plain.to_string(),
        }
    }
    let sections = resolved(experiment);
    let sections = sections.as_object().unwrap().iter();
    sections
        .map(|(key, section)| format!("{key} = {}\n", value(section)))
        .collect()
}

#[test]
fn every_resolved_kind_reads_back() {
    for traffic in [
        "kind = 'voip'\nrtt = '40 ms'\ncodec = 'gsm_efr'\ndscp = 'EF'",
        "kind = 'game'\nrtt = '40 ms'\ndirection = 'up'",
        "kind = 'ping'\nrtt = '40 ms'\nprotocol = 'udp'\npacket = '1 B'",
        "kind = 'web'\nrtt = '40 ms'\nconnections = 0.5\necn = true",
        "kind = 'web'\nrtt = '40 ms'\nparallel = 2\nsize = { distribution = 'lognormal', median = '10 kB', sigma = 1.5 }",
        "kind = 'video'\nrtt = '40 ms'\nsegment = '2 s'\nladder = ['1 Mbit/s', '3 Mbit/s']",
        "kind = 'onoff'\nrtt = '40 ms'\nrate = '3 Mbit/s'\noff = '0 s'",
        "kind = 'onoff'\nrtt = '40 ms'\ntransport = 'tcp'\ntimes = 'fixed'\nmss = '536 B'",
        "kind = 'files'\nrtt = '40 ms'\nsize = { distribution = 'uniform', min = '1 kB', max = '9 kB' }\narrivals = 0.25",
        "kind = 'files'\nrtt = '40 ms'\nsize = { distribution = 'exponential', mean = '1 kB' }\ncount = 3",
        "kind = 'rrul'\nrtt = '40 ms'\nabe = true\necn = true",
    ] {
        let first = experiment(traffic);
        let again = read_text(&written_out(&first)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(*again.cells[0].experiment, first, "{traffic}");
    }
}

/// A temporary folder of one test, deleted at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

const TRACED: &str = r#"
experiment = { duration = "10 s" }
link = { rate = { trace = "traces/short.pps" }, buffer = "1 bdp" }
queue = [{ aqm = "pfifo" }]
traffic = [{ kind = "bulk", rtt = "40 ms" }]
sweep = { "traffic.0.flows" = [1, 2] }
"#;

#[test]
fn a_trace_is_found_beside_the_experiment_file() {
    let folder = Folder::new("trace");
    std::fs::create_dir(folder.0.join("traces")).unwrap();
    std::fs::write(folder.0.join("traces/short.pps"), "1\n2\n2\n4\n").unwrap();
    std::fs::write(folder.0.join("load.toml"), TRACED).unwrap();
    let plan = read_file(&folder.0.join("load.toml"), &[], &names()).unwrap();
    assert_eq!(plan.cells.len(), 2);
    let Capacity::Trace(trace) = &plan.cells[1].experiment.links[0].rate else {
        panic!("not a trace");
    };
    assert_eq!(trace.period(), MS(4));
    // Four packets of 1500 bytes in 4 ms.
    assert_eq!(trace.mean_rate(), Rate::from_mbps(12));
    assert_eq!(
        resolved(&plan.cells[0].experiment)["link"]["rate"]["trace"],
        "traces/short.pps"
    );
}

#[test]
fn a_trace_in_an_override_is_found_from_the_working_directory() {
    let folder = Folder::new("trace-set");
    let trace = folder.0.join("set.pps");
    std::fs::write(&trace, "1\n2\n").unwrap();
    let here = std::env::current_dir().unwrap();
    let relative = "../".repeat(here.components().count() - 1) + &trace.to_str().unwrap()[1..];
    std::fs::create_dir(folder.0.join("elsewhere")).unwrap();
    let file = folder.0.join("elsewhere/load.toml");
    std::fs::write(&file, TRACED).unwrap();
    let overrides = [("link.rate.trace".to_owned(), relative)];
    let plan = read_file(&file, &overrides, &names()).unwrap();
    // Two packets of 1500 bytes in 2 ms.
    let rate = plan.cells[0].experiment.links[0].rate.nominal();
    assert_eq!(rate, Rate::from_mbps(12));
}

#[test]
fn a_bad_line_of_a_trace_is_named() {
    let folder = Folder::new("bad-trace");
    std::fs::create_dir(folder.0.join("traces")).unwrap();
    let trace = folder.0.join("traces/short.pps");
    std::fs::write(&trace, "1\ntwo\n").unwrap();
    let file = folder.0.join("load.toml");
    std::fs::write(&file, TRACED).unwrap();
    let error = read_file(&file, &[], &names()).unwrap_err().to_string();
    let expected = format!(
        r#"{}:3: link.rate.trace: got "traces/short.pps"; {}:2: got "two"; must be a time in whole milliseconds, at most 86400000"#,
        file.display(),
        trace.display(),
    );
    assert_eq!(error, expected);
}
