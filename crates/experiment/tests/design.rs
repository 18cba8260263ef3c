//! `[sweep] design`: what it accepts, and the cells of its points.

use sojourn_experiment::{DisciplineKeys, Names, Source, Sweep, design, read};

const FILE: &str = r#"experiment = { duration = "6 s" }
link = { rate = "10 Mbit/s" }
queue = [{ aqm = "pfifo" }]
traffic = [{ kind = "bulk", flows = 4, rtt = "100 ms" }]
[sweep]
design = "sobol"
samples = 8
"link.rate" = { from = "1 Mbit/s", to = "100 Mbit/s", scale = "log" }
traffic.0.flows = { from = 1, to = 8 }
"traffic.0.rtt" = ["10 ms", "50 ms"]
"#;

fn names() -> Names {
    Names {
        disciplines: vec![DisciplineKeys {
            name: "pfifo".into(),
            keys: vec![],
        }],
        congestion_controls: vec!["cubic".into()],
    }
}

/// The result of `design` for a text.
fn design_of(text: &str, overrides: &[(&str, &str)]) -> Result<serde_json::Value, String> {
    let folder = std::env::temp_dir().join(format!("design-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let name = format!("{:?}.toml", std::thread::current().id()).replace(['(', ')'], "");
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    let found = design(&path, &owned(overrides), &names());
    found.map_err(|error| error.to_string().replace(&path.display().to_string(), "f"))
}

fn owned(overrides: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = overrides.iter();
    pairs
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

fn source(text: &str) -> Source<'_> {
    Source { name: "f", text }
}

const POINTS: (&str, &str) = (
    "sweep.points",
    r#"{ "link.rate" = ["2 Mbit/s", "90 Mbit/s", "2 Mbit/s"], "traffic.0.flows" = [1, 8, 1], "traffic.0.rtt" = ["50 ms", "10 ms", "50 ms"] }"#,
);

#[test]
fn a_design_is_returned_with_its_ranges() {
    let found = design_of(FILE, &[]).unwrap();
    assert_eq!(
        found,
        serde_json::json!({
            "kind": "sobol", "samples": 8, "seed": 1,
            "keys": [
                {"key": "link.rate", "from": 1.0, "to": 100.0, "unit": " Mbit/s", "log": true, "whole": false},
                {"key": "traffic.0.flows", "from": 1.0, "to": 8.0, "unit": "", "log": false, "whole": true},
                {"key": "traffic.0.rtt", "values": ["10 ms", "50 ms"]},
            ],
        })
    );
    let found = design_of(FILE, &[("link.rate", "5 Mbit/s"), ("sweep.samples", "16")]).unwrap();
    assert_eq!(found["samples"], 16);
    assert_eq!(found["keys"].as_array().unwrap().len(), 2);
    assert!(design_of(FILE, &[POINTS]).unwrap().is_null());
    let grid = FILE.split("[sweep]").next().unwrap();
    assert!(design_of(grid, &[]).unwrap().is_null());
}

#[test]
fn points_are_cells_in_their_order() {
    let plan = read(source(FILE), &owned(&[POINTS]), &names()).unwrap();
    let rates: Vec<_> = plan
        .cells
        .iter()
        .map(|cell| cell.set[0].1.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(rates, ["2 Mbit/s", "90 Mbit/s", "2 Mbit/s"]);
    assert_eq!(plan.cells[1].set[1].1, 8);
    assert_eq!(plan.cells[0].set, plan.cells[2].set);
    let sweep = Sweep::read(source(FILE), &owned(&[POINTS]), &names()).unwrap();
    assert_eq!((sweep.cells(), sweep.runs()), (3, 3));
    assert_eq!(sweep.edges(), [0, 1, 2]);
    assert_eq!(sweep.cell(1).unwrap().set, plan.cells[1].set);
}

#[test]
fn a_design_without_points_is_refused() {
    let expected = "f:6: sweep.design: got \"sobol\"; only sojourn sweep, sojourn run and sojourn.plan sample a design";
    let error = read(source(FILE), &[], &names()).unwrap_err();
    assert_eq!(error.to_string(), expected);
    let error = Sweep::read(source(FILE), &[], &names()).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn mistakes_are_reported_with_their_line() {
    let range = r#"{ from = "1 Mbit/s", to = "100 Mbit/s", scale = "log" }"#;
    for (is, becomes, expected) in [
        (
            "\"sobol\"",
            "\"random\"",
            "f:6: sweep.design: got \"random\"; must be \"sobol\" or \"latin_hypercube\"",
        ),
        (
            "samples = 8",
            "samples = 9",
            "f:6: sweep.samples: got 9; must be a power of two",
        ),
        (
            "samples = 8",
            "samples = \"8\"",
            "f:7: sweep.samples: got \"8\"; must be a whole number from 2 to 100000",
        ),
        (
            "samples = 8\n",
            "",
            "f:6: sweep.samples: not given; must be the number of samples",
        ),
        (
            range,
            "{ from = 1, to = \"100 Mbit/s\" }",
            "f:8: sweep.link.rate: got 1 to \"100 Mbit/s\"; must have the same unit",
        ),
        (
            range,
            "{ from = \"1 Mbit/s\", to = \"9 kbit/s\" }",
            "f:8: sweep.link.rate: got \"1 Mbit/s\" to \"9 kbit/s\"; must have the same unit",
        ),
        (
            range,
            "{ from = \"9 Mbit/s\", to = \"1 Mbit/s\" }",
            "f:8: sweep.link.rate: got \"9 Mbit/s\" to \"1 Mbit/s\"; must have the same unit, and from be below to",
        ),
        (
            "{ from = 1, to = 8 }",
            "{ from = 0, to = 8, scale = \"log\" }",
            "f:9: sweep.traffic.0.flows: got 0 to 8; must have the same unit, and from be above 0 and below to",
        ),
        (
            range,
            "{ from = \"x\", to = \"y\" }",
            "f:8: sweep.link.rate: got \"x\" to \"y\"; must be numbers of the same unit",
        ),
        (
            range,
            "{ from = \"1 ms\", to = \"2 ms\" }",
            "f:8: sweep.link.rate: got \"1 ms\"; must be a rate",
        ),
        (
            "\"log\" }",
            "\"cubic\" }",
            "f:8: sweep.link.rate: scale: got \"cubic\"; must be \"linear\" or \"log\"",
        ),
        (
            "\"log\" }",
            "\"log\", step = 2 }",
            "f:8: sweep.link.rate.step: unknown key; accepted by a range: from, to, scale",
        ),
        (
            "design = \"sobol\"\nsamples = 8\n",
            "",
            "f:6: sweep.link.rate: a range needs a design: must be an array",
        ),
    ] {
        assert!(FILE.contains(is), "{is}");
        let error = design_of(&FILE.replacen(is, becomes, 1), &[]).unwrap_err();
        assert!(error.starts_with(expected), "{error}\nis not\n{expected}");
    }
}

#[test]
fn points_must_be_those_of_the_design() {
    for (points, expected) in [
        ("7", "must be a table of arrays"),
        (
            "{ \"link.rate\" = [\"2 Mbit/s\"] }",
            "must have the values of each key of the design",
        ),
        (
            "{ \"link.delay\" = [\"2 ms\"] }",
            "has link.delay, which the design does not sample",
        ),
        (
            "{ \"link.rate\" = [\"2 Mbit/s\"], \"traffic.0.flows\" = [1, 2], \"traffic.0.rtt\" = [\"10 ms\"] }",
            "must have the same number of values for each key, at least one",
        ),
    ] {
        let error = read(source(FILE), &owned(&[("sweep.points", points)]), &names()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
