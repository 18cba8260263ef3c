//! The requests of a page, answered natively.

use serde_json::{Value as Json, json};
use sojourn_wasm::Lab;

const TEXT: &str = r#"
[experiment]
duration = "2 s"
repeat = 2
[link]
rate = "4 Mbit/s"
[[queue]]
aqm = "pfifo"
limit = "20 packets"
[[queue]]
aqm = "cake"
[[traffic]]
kind = "bulk"
flows = 2
rtt = "30 ms"
[sweep]
"link.rate" = ["4 Mbit/s", "8 Mbit/s"]
"#;

fn ask(lab: &mut Lab, request: &Json) -> Json {
    let reply = lab.call(request.to_string().as_bytes());
    serde_json::from_str(&reply).expect("a reply is JSON")
}

fn read(lab: &mut Lab, text: &str) -> Json {
    ask(lab, &json!({"do": "read", "name": "a.toml", "text": text}))
}

#[test]
fn a_file_is_listed_and_each_of_its_runs_gives_the_summary_of_the_simulator() {
    let mut lab = Lab::default();
    let listed = read(&mut lab, TEXT);
    assert_eq!(listed["count"], 8);
    assert_eq!(listed["arms"][1], json!({"label": "cake", "aqm": "cake"}));
    assert_eq!(listed["runs"][7]["set"], json!({"link.rate": "8 Mbit/s"}));
    assert_eq!(listed["numbers"], json!({"4 Mbit/s": 4e6, "8 Mbit/s": 8e6}));
    let source = sojourn_experiment::Source {
        name: "a.toml",
        text: TEXT,
    };
    let plan = sojourn_experiment::read(source, &[], &sojourn_sim::names()).expect("it is right");
    for (run, spec) in plan.specs().enumerate() {
        let begun = ask(&mut lab, &json!({"do": "begin", "run": run}));
        assert_eq!(begun["seed"], spec.seed);
        let reply = lab.call(br#"{"do": "finish"}"#);
        let set = spec.set_json();
        let result = sojourn_sim::run(spec, &sojourn_sim::catalogue()).expect("it runs");
        let summary = sojourn_experiment::summary_json(&result, &set).expect("it serialises");
        assert!(reply.starts_with(&format!("{{\"summary\":{summary},\"tables\":{{")));
    }
}

#[test]
fn mistakes_have_their_place_and_leave_the_laboratory_usable() {
    let mut lab = Lab::default();
    let refused = |reply: &Json| reply["error"]["message"].as_str().map(str::to_owned);
    let unread = ask(&mut lab, &json!({"do": "begin", "run": 0}));
    assert_eq!(refused(&unread).as_deref(), Some("no file was read"));
    let wrong = read(&mut lab, &TEXT.replace("30 ms", "30 mz"));
    let told = refused(&wrong).expect("a mistake");
    assert!(
        told.starts_with("a.toml:15: traffic.0.rtt: got \"30 mz\""),
        "{told}"
    );
    assert_eq!(
        (&wrong["error"]["line"], &wrong["error"]["column"]),
        (&json!(15), &json!(1))
    );
    // A mistake that only the discipline can find.
    let wrong = read(
        &mut lab,
        &TEXT.replace(
            "\"cake\"",
            "\"red\"\nmin = \"50 packets\"\nmax = \"20 packets\"",
        ),
    );
    assert_eq!(wrong["error"]["line"], 13, "{wrong}");
    let unknown = ask(&mut lab, &json!({"do": "dance"}));
    assert!(refused(&unknown).is_some_and(|told| told.contains("unknown variant `dance`")));
    read(&mut lab, TEXT);
    let beyond = ask(&mut lab, &json!({"do": "begin", "run": 8}));
    assert_eq!(refused(&beyond).as_deref(), Some("no such run"));
    assert!(refused(&ask(&mut lab, &json!({"do": "observe"}))).is_some());
    ask(&mut lab, &json!({"do": "begin", "run": 1}));
    let set = json!({"do": "set", "key": "queue.rtt", "value": "50 ms"});
    let told = refused(&ask(&mut lab, &set)).expect("cake cannot");
    assert!(told.contains("cannot be changed while it runs"), "{told}");
}

#[test]
fn a_watched_run_is_stepped_observed_and_changed() {
    let mut lab = Lab::default();
    read(&mut lab, TEXT);
    let begun = ask(&mut lab, &json!({"do": "begin", "run": 0, "watch": true}));
    assert_eq!(begun["queues"][0]["name"], "down");
    assert_eq!(begun["flows"].as_array().map(Vec::len), Some(2));
    assert_eq!(begun["settings"]["link"]["rate"], "4 Mbit/s");
    let at = ask(&mut lab, &json!({"do": "advance", "until_s": 1.0}));
    assert_eq!(at, json!({"now_s": 1.0, "end_s": 2.0, "finished": false}));
    let mut values = Vec::new();
    lab.take_events(&mut values);
    assert_eq!(values.len() % sojourn_wasm::lab::EVENT_VALUES, 0);
    let events = values.chunks_exact(sojourn_wasm::lab::EVENT_VALUES);
    let waiting = events.fold(0, |waiting, event| {
        waiting + if event[1] == 5.0 { 1 } else { -1 }
    });
    let seen = ask(&mut lab, &json!({"do": "observe"}));
    assert_eq!(seen["queues"][0]["backlog_packets"], waiting);
    let set = json!({"do": "set", "key": "link.rate", "value": "1 Mbit/s"});
    assert_eq!(ask(&mut lab, &set), json!({}));
    ask(&mut lab, &json!({"do": "advance"}));
    let seen = ask(&mut lab, &json!({"do": "observe"}));
    let rates = seen["flows"].as_array().expect("flows").iter();
    let sum: f64 = rates.filter_map(|flow| flow["goodput_bps"].as_f64()).sum();
    assert!(sum < 1.1e6, "{sum}");
}

#[test]
fn the_page_learns_names_metrics_and_the_schema() {
    let about = ask(&mut Lab::default(), &json!({"do": "about"}));
    let names = about["disciplines"].as_array().expect("a list");
    assert!(names.iter().any(|known| known["name"] == "fq_codel"));
    assert_eq!(about["metrics"][0]["name"], "sojourn_p50_ms");
    assert!(about["schema"]["properties"]["queue"].is_object());
}
