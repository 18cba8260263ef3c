//! `[[link]]`: links, nodes and routes in the file.

mod common;

use common::{read_text, read_with};
use serde_json::Value as Json;
use sojourn_experiment::model::{Experiment, Way};
use sojourn_experiment::{ReadError, resolved};
use sojourn_units::{Duration, Rate};

/// A managed link before an unmanaged one.
const TWO: &str = r#"
experiment = { duration = "10 s" }
queue = [{ aqm = "codel" }]

[[link]]
name = "home"
from = "isp"
to = "gateway"
rate = "20 Mbit/s"
delay = "5 ms"
up = { rate = "2 Mbit/s" }

[[link]]
name = "modem"
from = "gateway"
to = "host"
rate = "100 Mbit/s"
delay = "1 ms"
queue = { aqm = "pfifo", limit = "256 packets" }

[[traffic]]
name = "movie"
kind = "bulk"
from = "isp"
to = "host"
rtt = "40 ms"
"#;

fn one(text: &str) -> Experiment {
    let plan = read_text(text).unwrap_or_else(|error| panic!("{error}"));
    Experiment::clone(&plan.cells[0].experiment)
}

fn refused(from: &str, to: &str) -> String {
    assert!(TWO.contains(from), "{from}");
    let error: ReadError = read_text(&TWO.replacen(from, to, 1)).expect_err(to);
    error.to_string()
}

#[test]
fn links_and_routes_are_read() {
    let experiment = one(TWO);
    let names: Vec<&str> = experiment
        .links
        .iter()
        .map(|link| link.name.as_str())
        .collect();
    assert_eq!(names, ["home", "modem"]);
    assert_eq!(experiment.bottleneck().name, "home");
    let route = &experiment.traffic[0].route;
    let hops: Vec<(usize, Way)> = route.hops.iter().map(|hop| (hop.link, hop.way)).collect();
    assert_eq!(hops, [(0, Way::Down), (1, Way::Down)]);
    assert_eq!(route.delay(&experiment.links), Duration::from_millis(6));
    let fixed = experiment.links[1].queue.as_ref().expect("it has its own");
    assert_eq!(fixed.aqm, "pfifo");
}

#[test]
fn a_resolved_network_reads_back() {
    let experiment = one(TWO);
    let written = resolved(&experiment);
    let again = one(&toml_of(&written));
    assert_eq!(again, experiment);
}

/// JSON as an inline table of TOML.
fn toml_of(json: &Json) -> String {
    fn value(json: &Json) -> String {
        match json {
            Json::Object(map) => {
                let pairs = map.iter().map(|(key, of)| format!("{key} = {}", value(of)));
                format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
            }
            Json::Array(items) => {
                let items: Vec<String> = items.iter().map(value).collect();
                format!("[{}]", items.join(", "))
            }
            scalar => scalar.to_string(),
        }
    }
    let sections = json.as_object().expect("an experiment is an object");
    let lines = sections
        .iter()
        .map(|(key, of)| format!("{key} = {}\n", value(of)));
    lines.collect()
}

#[test]
fn a_link_and_a_group_are_addressed_by_their_names() {
    let set = [
        ("link.home.up.rate", "3 Mbit/s"),
        ("traffic.movie.flows", "4"),
    ];
    let plan = read_with(TWO, &set).unwrap_or_else(|error| panic!("{error}"));
    let experiment = &plan.cells[0].experiment;
    let up = experiment.links[0]
        .up
        .as_ref()
        .expect("it has a queue upwards");
    assert_eq!(up.rate.nominal(), Rate::from_mbps(3));
    assert_eq!(experiment.traffic[0].flows, 4);
    let swept = format!("{TWO}\n[sweep]\n\"link.modem.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]\n");
    let plan = read_text(&swept).unwrap_or_else(|error| panic!("{error}"));
    let rates = plan
        .cells
        .iter()
        .map(|cell| cell.experiment.links[1].rate.nominal());
    assert_eq!(
        rates.collect::<Vec<_>>(),
        [Rate::from_mbps(1), Rate::from_mbps(2)]
    );
    let error = read_with(TWO, &[("link.hose.rate", "1 Mbit/s")]).expect_err("no such link");
    let expected = "load.toml: --set link.hose.rate: link has no entry \"hose\"; it has 2, counted from 0 or called home, modem";
    assert!(
        error
            .to_string()
            .ends_with(&expected["load.toml: ".len()..]),
        "{error}"
    );
}

#[test]
fn upstream_traffic_takes_its_route_in_reverse() {
    let experiment = one(&TWO.replace(
        "from = \"isp\"\nto = \"host\"",
        "from = \"host\"\nto = \"isp\"",
    ));
    let hops: Vec<(usize, Way)> = experiment.traffic[0]
        .route
        .hops
        .iter()
        .map(|hop| (hop.link, hop.way))
        .collect();
    assert_eq!(hops, [(1, Way::Up), (0, Way::Up)]);
}

#[test]
fn invalid_networks_are_refused() {
    let cases = [
        (
            "name = \"modem\"",
            "name = \"home\"",
            r#"14: link.1.name: link.0 is called "home" as well; give each a name of its own"#,
        ),
        (
            "name = \"modem\"",
            "name = \"2\"",
            r#"14: link.1.name: got "2"; must be a name like "gateway": a letter, then letters, digits, _ or -, 40 at most"#,
        ),
        (
            "to = \"gateway\"",
            "to = \"isp\"",
            r#"8: link.0.to: got "isp"; must be another node than from"#,
        ),
        (
            "up = { rate = \"2 Mbit/s\" }",
            "queue = { aqm = \"red\" }",
            "5: link: every link has a queue of its own; must leave one without, where the arms of [[queue]] are compared",
        ),
        (
            "from = \"isp\"\nto = \"host\"",
            "to = \"host\"",
            r#"21: traffic.0: from is missing; must be one of the nodes "isp", "gateway", "host""#,
        ),
        (
            "to = \"host\"\nrtt",
            "to = \"hoste\"\nrtt",
            r#"25: traffic.0.to: got "hoste"; did you mean "host"? accepted: isp, gateway, host"#,
        ),
        (
            "to = \"host\"\nrtt",
            "to = \"host\"\nvia = [\"isp\", \"x\"]\nrtt",
            r#"26: traffic.0.via.1: got "x"; accepted: isp, gateway, host"#,
        ),
        (
            "to = \"host\"\nrtt",
            "to = \"isp\"\nrtt",
            r#"21: traffic.0: goes from "isp" to itself; must go to another node"#,
        ),
        (
            "rtt = \"40 ms\"",
            "rtt = \"11 ms\"",
            r#"26: traffic.0.rtt: got "11 ms"; must be at least twice the delays of its route ("12 ms"), which is part of it"#,
        ),
        (
            "to = \"gateway\"",
            "to = \"elsewhere\"",
            r#"21: traffic.0: no links lead from "isp" to "host"; must go between nodes that links join"#,
        ),
    ];
    for (from, to, expected) in cases {
        assert_eq!(refused(from, to), format!("load.toml:{expected}"));
    }
    let single = "experiment = { duration = '10 s' }\nlink = { rate = '1 Mbit/s' }\nqueue = [{ aqm = 'codel' }]\n\
                  traffic = [{ kind = 'bulk', rtt = '40 ms', to = 'host' }]\n";
    let error = read_text(single)
        .expect_err("[link] has no nodes")
        .to_string();
    assert_eq!(
        error,
        "load.toml:4: traffic.0.to: got \"host\"; must be left out with [link], as it has no nodes; links with nodes are [[link]]"
    );
}

/// Unlimited TCP data on a path without a queue would be sent ever faster.
#[test]
fn bulk_traffic_needs_a_queue_on_its_path() {
    let up = TWO.replace(
        "from = \"isp\"\nto = \"host\"",
        "from = \"host\"\nto = \"gateway\"",
    );
    let error = read_text(&up).expect_err("no queue upwards").to_string();
    assert_eq!(
        error,
        "load.toml:21: traffic.0: sends without a limit against the direction of its links, where they have no queue; must have link.modem.up with a \
         rate, or a window"
    );
}
