//! What is written once and stands for much: `[[case]]`, `count`, the keys of an arm's reverse direction.

mod common;

use common::{read_text, read_with};
use serde_json::json;
use sojourn_experiment::derived::{self, Limit};
use sojourn_experiment::model::{Experiment, Way};
use sojourn_experiment::resolved;
use sojourn_units::{Rate, Value};

const LINE: &str = r#"
experiment = { duration = "10 s" }
link = { rate = "10 Mbit/s", up = { rate = "1 Mbit/s" } }
queue = [{ aqm = "fq_codel" }]
traffic = [{ kind = "bulk", rtt = "20 ms" }]
"#;

fn refused(text: &str) -> String {
    read_text(text).expect_err("it is wrong").to_string()
}

fn one(text: &str) -> Experiment {
    let plan = read_text(text).unwrap_or_else(|error| panic!("{error}"));
    Experiment::clone(&plan.cells[0].experiment)
}

fn line(more: &str) -> String {
    format!("{LINE}{more}")
}

#[test]
fn a_case_sets_several_keys_and_cases_cross_with_the_sweep() {
    let text = line(
        r#"
[[case]]
label = "as it is"
[[case]]
label = "shaped"
set = { "link.rate" = "9 Mbit/s", link.up.rate = "900 kbit/s" }
[sweep]
"traffic.0.flows" = [1, 4]
"#,
    );
    let plan = read_text(&text).unwrap_or_else(|error| panic!("{error}"));
    let cells: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| {
            let experiment = &cell.experiment;
            let up = experiment.links[0].up.as_ref().map(|up| up.rate.nominal());
            let rates = (experiment.links[0].rate.nominal(), up);
            (cell.set.clone(), rates, experiment.traffic[0].flows)
        })
        .collect();
    let set = |case: &str, flows: u32| {
        vec![
            ("case".to_owned(), json!(case)),
            ("traffic.0.flows".to_owned(), json!(flows)),
        ]
    };
    let given = (Rate::from_mbps(10), Some(Rate::from_mbps(1)));
    let shaped = (Rate::from_mbps(9), Rate::from_bps(900_000));
    assert_eq!(
        cells,
        [
            (set("as it is", 1), given, 1),
            (set("as it is", 4), given, 4),
            (set("shaped", 1), shaped, 1),
            (set("shaped", 4), shaped, 4),
        ]
    );
}

#[test]
fn an_override_is_stronger_than_a_case() {
    let text = line("case = [{ label = \"a\", set = { \"link.rate\" = \"9 Mbit/s\" } }]");
    let plan = read_with(&text, &[("link.rate", "5 Mbit/s")]).expect("it is right");
    assert_eq!(
        plan.cells[0].experiment.links[0].rate.nominal(),
        Rate::from_mbps(5)
    );
}

/// The same key by an entry's number and its name, and a key beside one that it is a part of.
#[test]
fn a_key_has_one_value_however_it_is_spelt() {
    let home = LINE.replace("{ kind", "{ name = \"home\", kind");
    let case = |key: &str, value: &str| {
        format!("{home}case = [{{ label = \"a\", set = {{ \"{key}\" = {value} }} }}]\n")
    };
    let ms = |plan: sojourn_experiment::Plan| {
        let cells = plan.cells.iter();
        cells
            .map(|cell| cell.experiment.traffic[0].rtt.as_millis_f64())
            .collect::<Vec<_>>()
    };
    let by_name = case("traffic.home.rtt", "\"80 ms\"");
    let set = |text: &str, key, value| read_with(text, &[(key, value)]).map(ms);
    assert_eq!(set(&by_name, "traffic.0.rtt", "40 ms"), Ok(vec![40.0]));
    let swept = format!("{home}sweep = {{ \"traffic.0.rtt\" = [\"40 ms\", \"60 ms\"] }}\n");
    assert_eq!(set(&swept, "traffic.home.rtt", "80 ms"), Ok(vec![80.0]));

    let both = by_name.clone() + "sweep = { \"traffic.0.rtt\" = [\"40 ms\", \"60 ms\"] }\n";
    assert!(refused(&both).contains("case.0.set.traffic.home.rtt: is swept as well"));
    let twice = swept.replace("] }", "], \"traffic.home.rtt\" = [\"80 ms\"] }");
    assert!(refused(&twice).contains("sweep.traffic.home.rtt: sets what sweep.traffic.0.rtt sets"));
    let whole = case("link.up", "{ rate = \"1 Mbit/s\" }");
    let part = whole.clone() + "sweep = { \"link.up.rate\" = [\"3 Mbit/s\", \"2 Mbit/s\"] }\n";
    assert!(refused(&part).contains("case.0.set.link.up: is swept as well"));
    let error = read_with(&whole, &[("link.up.rate", "5 Mbit/s")]).expect_err("a part of it");
    assert_eq!(
        error.to_string(),
        "--set link.up.rate: a case sets all of link.up; must be link.up as a whole"
    );
    let inner = format!("{home}sweep = {{ \"queue.0.target\" = [\"4 ms\", \"6 ms\"] }}\n");
    let cells = |set: &str| read_with(&inner, &[("queue", set)]).map(|plan| plan.cells.len());
    assert_eq!(cells("[{ aqm = \"codel\" }]"), Ok(2));
    assert_eq!(cells("[{ aqm = \"codel\", target = \"9 ms\" }]"), Ok(1));
    let child = case("link.up.rate", "\"1 Mbit/s\"");
    let plan = read_with(&child, &[("link.up", "{ rate = \"5 Mbit/s\" }")]).expect("it is right");
    let up = plan.cells[0].experiment.links[0]
        .up
        .as_ref()
        .map(|up| up.rate.nominal());
    assert_eq!(up, Some(Rate::from_mbps(5)));
}

#[test]
fn mistakes_in_cases_have_their_line() {
    let of = |case: &str| refused(&line(&format!("case = [{case}]")));
    assert_eq!(
        of("{ set = { \"link.rate\" = \"1 Mbit/s\" } }"),
        "load.toml:6: case.0.label: missing; must be a text"
    );
    assert_eq!(
        of("{ label = \"a\" }, { label = \"a\" }"),
        "load.toml:6: case.1.label: got \"a\"; case.0 has the same; must be different labels"
    );
    let wrong = of("{ label = \"a\", set = { \"link.rate\" = \"1 ms\" } }");
    assert!(
        wrong.starts_with("load.toml:6: link.rate: got \"1 ms\"; must be a rate"),
        "{wrong}"
    );
    assert!(
        wrong.ends_with("(in the sweep, with case = \"a\")"),
        "{wrong}"
    );
    assert_eq!(
        of("{ label = \"a\", sets = {} }"),
        "load.toml:6: case.0.sets: unknown key; accepted by [[case]]: label, set"
    );
    let both = line(
        "case = [{ label = \"a\", set = { \"link.rate\" = \"1 Mbit/s\" } }]\nsweep = { \"link.rate\" = [\"2 Mbit/s\"] }",
    );
    assert_eq!(
        refused(&both),
        "load.toml:6: case.0.set.link.rate: is swept as well; must be one of both"
    );
}

#[test]
fn a_count_is_as_many_groups_with_a_total() {
    let text = LINE.replace(
        "{ kind = \"bulk\", rtt",
        "{ kind = \"bulk\", name = \"home\", host = \"pc{i}\", count = 3, rtt",
    );
    let experiment = one(&text);
    let groups: Vec<_> = experiment
        .traffic
        .iter()
        .map(|group| {
            (
                group.name.as_deref(),
                group.host.as_deref(),
                group.total.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        groups,
        [
            (Some("home-1"), Some("pc1"), Some("home")),
            (Some("home-2"), Some("pc2"), Some("home")),
            (Some("home-3"), Some("pc3"), Some("home")),
        ]
    );
    let again = resolved(&experiment).to_string();
    let written: serde_json::Value = serde_json::from_str(&again).expect("it is JSON");
    assert_eq!(written["traffic"][2]["total"], json!("home"));
}

#[test]
fn files_count_files() {
    let text = LINE.replace("\"bulk\"", "\"files\", size = \"1 MB\", count = 3");
    assert_eq!(one(&text).traffic.len(), 1);
}

#[test]
fn links_are_counted_too() {
    let text = r#"
experiment = { duration = "10 s" }
queue = [{ aqm = "codel" }]
[[link]]
name = "line"
count = 3
from = "isp"
to = "home-{i}"
rate = "10 Mbit/s"
[[traffic]]
kind = "bulk"
name = "{i} movie"
count = 3
from = "isp"
to = "home-{i}"
rtt = "20 ms"
"#;
    let experiment = one(text);
    let names: Vec<&str> = experiment.links.iter().map(|link| &*link.name).collect();
    assert_eq!(names, ["line-1", "line-2", "line-3"]);
    let last = &experiment.traffic[2];
    assert_eq!(last.name.as_deref(), Some("3 movie"));
    assert_eq!(last.total.as_deref(), Some("movie"));
    assert_eq!(last.route.hops(Way::Down)[0].link, 2);
    assert_eq!(
        refused(&text.replacen("count = 3", "count = 0", 1)),
        "load.toml:6: link.0.count: got 0; must be a whole number from 1 to 10000"
    );
    assert_eq!(
        refused(&text.replacen("home-{i}", "home-{j}", 1)),
        "load.toml:8: link.0.to: got \"home-{j}\"; {i} is what stands for the number"
    );
}

/// Of three movies and a call, the call is the second entry of the file, also where it has another's name.
#[test]
fn messages_name_entries_as_they_are_written() {
    let text = LINE.replace(
        "{ kind = \"bulk\", rtt",
        "{ kind = \"bulk\", name = \"movie\", count = 3, rtt = \"20 ms\" }, { kind = \"bulk\", name = \"call\", rtt",
    );
    assert_eq!(one(&text).traffic.len(), 4);
    let wrong = refused(&text.replace("name = \"call\"", "flows = 0"));
    assert!(wrong.contains(" traffic.1.flows: got 0"), "{wrong}");
    let twice = refused(&text.replace("name = \"call\"", "name = \"movie-2\""));
    assert!(
        twice.contains(" traffic.1.name: ") && twice.contains("traffic.0 is called"),
        "{twice}"
    );
}

#[test]
fn an_arm_may_have_other_keys_in_the_reverse_direction() {
    let text = LINE.replace(
        "{ aqm = \"fq_codel\" }",
        "{ aqm = \"fq_codel\", target = \"5 ms\", flows = 64, up = { target = \"20 ms\", limit = \"99 packets\" } }",
    );
    let experiment = one(&text);
    let egresses = derived::queues(&experiment, 0);
    let target = |index: usize| {
        let settings = &egresses[index].arm.settings;
        let found = settings.iter().find(|(key, _)| key == "target");
        found.map(|(_, value)| value.clone())
    };
    let ms = |ms| Some(Value::Duration(sojourn_units::Duration::from_millis(ms)));
    assert_eq!((target(0), target(1)), (ms(5), ms(20)));
    assert_eq!(
        derived::limit(&experiment, &egresses[1]),
        Some(Limit::Packets(99))
    );
    assert_eq!(egresses[1].key_of(0, "target"), "queue.0.up.target");
    assert_eq!(
        resolved(&experiment)["queue"][0]["up"],
        json!({"target": "20 ms", "limit": "99 packets"})
    );
    let wrong = refused(&text.replace("up = { target", "up = { tarjet"));
    assert!(
        wrong.starts_with("load.toml:4: queue.0.up.tarjet: unknown key; did you mean \"target\"?"),
        "{wrong}"
    );
}

/// 250 ms at 10 Mbit/s are 312,500 bytes: 206 frames of 1514 bytes.
#[test]
fn a_buffer_may_be_the_time_to_send_it() {
    let experiment = one(&LINE.replace("\"10 Mbit/s\",", "\"10 Mbit/s\", buffer = \"250 ms\","));
    let egresses = derived::queues(&experiment, 0);
    assert_eq!(
        derived::limit(&experiment, &egresses[0]),
        Some(Limit::Packets(206))
    );
    assert_eq!(resolved(&experiment)["link"]["buffer"], json!("250 ms"));
}

const TREE: &str = r#"
experiment = { duration = "10 s" }
link = { rate = "100 Mbit/s", up = { rate = "20 Mbit/s" } }
class = [
  { name = "site", rate = "50 Mbit/s", up = { rate = "5 Mbit/s" } },
  { name = "gold", count = 2, parent = "site", rate = "10 Mbit/s", ceil = "40 Mbit/s", up = { rate = "2 Mbit/s" } },
  { name = "other", rate = "10 Mbit/s" },
]
queue = [{ aqm = "fq_codel" }, { aqm = "fq_codel", classes = false }]
traffic = [
  { kind = "bulk", name = "gold", count = 2, class = "gold-{i}", host = "gold-{i}", rtt = "20 ms" },
  { kind = "ping", class = "other", rtt = "20 ms" },
]
"#;

/// Parents first, rates of both directions, and traffic that names a class without children.
#[test]
fn classes_form_a_tree() {
    let experiment = one(TREE);
    let tree: Vec<(&str, Option<usize>)> = experiment
        .classes
        .iter()
        .map(|class| (class.name.as_str(), class.parent))
        .collect();
    let expected = [
        ("site", None),
        ("gold-1", Some(0)),
        ("gold-2", Some(0)),
        ("other", None),
    ];
    assert_eq!(tree, expected);
    let mbps = |way| {
        let share = experiment.classes[1].share(way);
        [share.rate, share.ceil].map(|rate| rate.as_bps() / 1_000_000)
    };
    assert_eq!((mbps(Way::Down), mbps(Way::Up)), ([10, 40], [2, 2]));
    assert_eq!(derived::leaf_classes(&experiment.classes), [1, 2, 3]);
    let hosts = [(0x0a02_0001, 1), (0x0a02_0101, 2), (0x0a02_0201, 3)];
    assert_eq!(derived::class_of_hosts(&experiment), hosts);
    let of_arm =
        |arm: usize| derived::classes(&experiment, &derived::queues(&experiment, arm)[0]).len();
    assert_eq!((of_arm(0), of_arm(1)), (4, 0));
    assert_eq!(experiment.queues[1].label, "fq_codel classes=false");
    let written = resolved(&experiment);
    assert_eq!(written["class"][1]["parent"], "site");
    assert_eq!(written["traffic"][1]["class"], "gold-2");
    assert_eq!(written["queue"][1]["classes"], false);
}

#[test]
fn mistakes_of_a_tree_are_named() {
    let with = |from: &str, to: &str| refused(&TREE.replacen(from, to, 1));
    assert_eq!(
        with(r#"parent = "site""#, r#"parent = "town""#),
        r#"load.toml:6: class.1.parent: got "town"; must be the name of a class that stands before it in the file"#
    );
    assert_eq!(
        with(r#"ceil = "40 Mbit/s""#, r#"ceil = "4 Mbit/s""#),
        r#"load.toml:6: class.1.ceil: got "4 Mbit/s"; must be at least the rate ("10 Mbit/s")"#
    );
    assert_eq!(
        with(r#"name = "other""#, r#"name = "site""#),
        r#"load.toml:7: class.2.name: class.0 is called "site" as well; give each a name of its own"#
    );
    assert_eq!(
        with(r#"class = "other""#, r#"class = "site""#),
        r#"load.toml:12: traffic.1.class: got "site"; must be a class without classes below it"#
    );
    assert_eq!(
        with(r#"class = "other", "#, ""),
        "load.toml:12: traffic.1: has no class; must have one, as all packets of the link"
    );
    assert_eq!(
        with(r#"host = "gold-{i}""#, r#"host = "gold""#),
        r#"load.toml:11: traffic.0.class: its host "gold" has traffic of class "gold-1"; must be one class for a host"#
    );
    assert!(
        refused(&LINE.replace("bulk\"", "bulk\", class = \"a\""))
            .contains("must be left out: the file has no [[class]]")
    );
}

/// HTB lets a class send its rate whatever the class above may send.
#[test]
fn a_class_that_promises_too_much_is_noted() {
    assert_eq!(sojourn_experiment::notes(&one(TREE)), [""; 0]);
    let text = TREE.replace(r#"rate = "10 Mbit/s", ceil"#, r#"rate = "30 Mbit/s", ceil"#);
    let notes = sojourn_experiment::notes(&one(&text));
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0]
            .starts_with("class site: the rates of the classes below it add up to 60 Mbit/s down"),
        "{notes:?}"
    );
}

/// Keys for the reverse direction of a link that has none would have no effect.
#[test]
fn keys_of_the_reverse_direction_need_a_link_with_one() {
    let text = LINE.replace(
        "{ aqm = \"fq_codel\" }",
        "{ aqm = \"fq_codel\", up = { target = \"20 ms\" } }",
    );
    one(&text);
    let wrong = refused(&text.replace(", up = { rate = \"1 Mbit/s\" } }", " }"));
    assert!(wrong.contains(" queue.0.up: "), "{wrong}");
    assert!(wrong.contains("link.up"), "{wrong}");
}
