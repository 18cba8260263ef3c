//! `[[link]]` with `kind = "wifi"`: valid and invalid settings.

mod common;

use common::{names, read_text, read_with};
use proptest::prelude::*;
use sojourn_experiment::model::{Experiment, Way};
use sojourn_experiment::wifi::{Guard, Queueing, RateControl, Standard, Width};
use sojourn_experiment::{InUse, RunSpec, notes, schema};

const CELL: &str = r#"
experiment = { duration = "10 s" }
queue = [{ aqm = "codel" }]

[[link]]
name = "line"
from = "isp"
to = "ap"
rate = "100 Mbit/s"
up = { rate = "10 Mbit/s" }
queue = { aqm = "pfifo" }

[[link]]
kind = "wifi"
name = "wifi"
from = "ap"
to = ["laptop", "phone"]
standard = "802.11n"
streams = 2
station = { laptop = { snr = "35 dB" }, phone = { rate = "6.5 Mbit/s", snr = "12.5 dB", fading = "50 ms" } }

[[traffic]]
kind = "bulk"
from = "isp"
to = "phone"
rtt = "40 ms"

[[traffic]]
kind = "bulk"
from = "laptop"
to = "phone"
rtt = "5 ms"
"#;

/// MCS 0 over 80 MHz needs 6 dB more than over 20 MHz, where 4 dB suffice.
#[test]
fn a_station_out_of_reach_is_told() {
    let at = |db: &str, cell: &str| {
        let text = CELL
            .replace("12.5 dB", db)
            .replace("rate = \"6.5 Mbit/s\", ", "");
        notes(&one(
            &text.replace("standard = \"802.11n\"\nstreams = 2", cell)
        ))
    };
    let wide = "standard = \"802.11ac\"\nwidth = \"80 MHz\"";
    assert_eq!(
        at("8 dB", wide),
        [
            "station phone of wifi: no rate carries 8 dB, which applies to 20 MHz and one stream; half of all frames arrive from about 10 dB on"
        ]
    );
    let none: [String; 0] = [];
    assert_eq!(at("12 dB", wide), none);
    assert_eq!(at("8 dB", "standard = \"802.11ac\""), none);
}

fn one(text: &str) -> Experiment {
    let plan = read_text(text).unwrap_or_else(|error| panic!("{error}"));
    Experiment::clone(&plan.cells[0].experiment)
}

#[test]
fn a_cell_is_read_with_its_defaults() {
    let experiment = one(CELL);
    let link = &experiment.links[1];
    let wifi = link.wifi.as_ref().expect("it is a cell");
    assert_eq!(
        (wifi.standard, wifi.width, wifi.streams, wifi.guard),
        (Standard::N, Width::Mhz20, 2, Guard::Long)
    );
    assert_eq!((wifi.queueing, wifi.kernel), (Queueing::Mac80211, (6, 12)));
    assert_eq!((wifi.rts_above, link.device_queue), (None, 64));
    assert_eq!(wifi.amsdu, None);
    let [laptop, phone] = wifi.stations.as_slice() else {
        panic!("two stations");
    };
    assert_eq!(laptop.rate, RateControl::Minstrel);
    assert_eq!((laptop.snr_db, laptop.fading), (Some(35.0), None));
    let RateControl::Fixed(mode) = phone.rate else {
        panic!("a fixed rate");
    };
    assert_eq!((mode.rate().as_bps(), mode.streams()), (6_500_000, 1));
    assert_eq!(phone.snr_db, Some(12.5));
    // MCS 7 on two streams.
    assert_eq!(link.rate.nominal().as_bps(), 130_000_000);
}

#[test]
fn routes_lead_to_stations_and_from_one_to_another() {
    let experiment = one(CELL);
    let passed = |group: usize, way: Way| {
        let route = &experiment.traffic[group].route;
        let hops = route.hops(way).into_iter().zip(route.stations(way));
        hops.map(|(hop, station)| (hop.link, hop.way, station))
            .collect::<Vec<_>>()
    };
    use Way::{Down, Up};
    assert_eq!(passed(0, Down), [(0, Down, 0), (1, Down, 1)]);
    assert_eq!(passed(0, Up), [(1, Up, 1), (0, Up, 0)]);
    assert_eq!(passed(1, Down), [(1, Up, 0), (1, Down, 1)]);
    assert_eq!(passed(1, Up), [(1, Up, 1), (1, Down, 0)]);
}

#[test]
fn rates_are_those_of_the_standards_tables() {
    for (standard, width, rate, kbps) in [
        ("802.11b", "20 MHz", "5.5 Mbit/s", 5_500),
        // An older standard in the same band.
        ("802.11g", "20 MHz", "1 Mbit/s", 1_000),
        ("802.11n", "20 MHz", "11 Mbit/s", 11_000),
        ("802.11ac", "80 MHz", "6 Mbit/s", 6_000),
        ("802.11g", "20 MHz", "54 Mbit/s", 54_000),
        ("802.11n", "20 MHz", "7.2 Mbit/s", 7_222),
        ("802.11n", "40 MHz", "300 Mbit/s", 300_000),
        ("802.11ac", "80 MHz", "866.7 Mbit/s", 866_666),
    ] {
        let streams = if standard < "802.11n" && standard != "802.11ac" {
            "1"
        } else {
            "2"
        };
        let set = [
            ("link.wifi.standard", standard),
            ("link.wifi.width", width),
            ("link.wifi.streams", streams),
            ("link.wifi.station.phone.rate", rate),
        ];
        let plan = read_with(CELL, &set).unwrap_or_else(|error| panic!("{error}"));
        let link = &plan.cells[0].experiment.links[1];
        let wifi = link.wifi.as_ref().expect("it is a cell");
        let RateControl::Fixed(mode) = wifi.stations[1].rate else {
            panic!("a fixed rate");
        };
        assert_eq!(mode.rate().as_bps() / 1000, kbps, "{standard} {rate}");
    }
}

#[test]
fn a_run_reads_back_from_its_document() {
    let text = format!(
        "{CELL}\n[sweep]\n\"link.wifi.station.laptop.rate\" = ['minstrel', 'ideal', '144.4 Mbit/s']\n\
         \"link.wifi.guard\" = ['800 ns', '400 ns']\n\"link.wifi.queueing\" = ['qdisc', 'mac80211']\n\
         \"link.wifi.up\" = [{{}}, {{ queue = {{ aqm = 'codel', target = '9 ms' }}, buffer = '30 packets' }}]\n"
    );
    let plan = read_text(&text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.cells.len(), 24);
    let amsdu = "\n[sweep]\n\"link.wifi.amsdu\" = ['1 B', '3839 B']\n\"link.wifi.amsdu_packets\" = [2, 1000]\n";
    let amsdus = read_text(&format!("{CELL}{amsdu}")).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(amsdus.cells.len(), 4);
    for spec in plan.specs().chain(amsdus.specs()) {
        let document = spec.document(&InUse::default());
        let again = RunSpec::read(&document.to_string(), &names());
        let again = again.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.experiment.links, spec.experiment.links);
        assert_eq!(again.experiment.traffic, spec.experiment.traffic);
        assert_eq!(again.document(&InUse::default()), document);
    }
}

#[test]
fn editors_accept_a_cell() {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler
        .add_resource("mem:experiment", schema(&names()))
        .expect("a resource");
    let root = compiler
        .compile("mem:experiment", &mut schemas)
        .expect("a schema");
    let mut file = sojourn_experiment::resolved(&one(CELL));
    assert!(schemas.validate(&file, root).is_ok());
    file["link"][1]["to"] = "laptop".into();
    assert!(schemas.validate(&file, root).is_ok());
    for (key, wrong) in [
        ("standard", "802.11x"),
        ("width", "30 MHz"),
        ("kernel", "six"),
    ] {
        let mut file = file.clone();
        file["link"][1][key] = wrong.into();
        assert!(schemas.validate(&file, root).is_err(), "{key} = {wrong}");
    }
}

/// Each refusal is one line with the place, the given value and the accepted values.
#[test]
fn invalid_cells_are_refused() {
    for (from, to, expected) in [
        (
            "kind = \"wifi\"",
            "kind = \"wlan\"",
            "link.1.kind: got \"wlan\"; accepted: wifi",
        ),
        (
            "standard = \"802.11n\"",
            "",
            "link.1.standard: missing; must be one of \"802.11b\", \"802.11g\", \"802.11n\", \"802.11ac\"",
        ),
        (
            "\"802.11n\"",
            "\"802.11q\"",
            "link.1.standard: got \"802.11q\"; did you mean \"802.11b\"? accepted: 802.11b, 802.11g, 802.11n, 802.11ac",
        ),
        (
            "\"802.11n\"",
            "11",
            "link.1.standard: got 11; must be one of \"802.11b\"",
        ),
        (
            "\"802.11n\"",
            "\"802.11g\"",
            "link.1.streams: got 2; must be 1 with 802.11g",
        ),
        (
            "streams = 2",
            "streams = 0",
            "link.1.streams: got 0; must be a whole number from 1 to 4",
        ),
        (
            "streams = 2",
            "streams = 5",
            "link.1.streams: got 5; must be a whole number from 1 to 4",
        ),
        (
            "streams = 2",
            "width = \"80 MHz\"",
            "link.1.width: got \"80 MHz\"; must be \"20 MHz\" or \"40 MHz\" with 802.11n",
        ),
        (
            "streams = 2",
            "width = \"22 MHz\"",
            "link.1.width: got \"22 MHz\"; accepted: 20 MHz, 40 MHz, 80 MHz",
        ),
        (
            "\"802.11n\"\nstreams = 2",
            "\"802.11b\"\nguard = \"400 ns\"",
            "link.1.guard: got \"400 ns\"; must be \"800 ns\" with 802.11b",
        ),
        (
            "\"802.11n\"\nstreams = 2",
            "\"802.11b\"\nwidth = \"40 MHz\"",
            "link.1.width: got \"40 MHz\"; must be \"20 MHz\" with 802.11b",
        ),
        (
            "\"6.5 Mbit/s\"",
            "\"7 Mbit/s\"",
            "link.1.station.phone.rate: got \"7 Mbit/s\"; must be \"minstrel\", \"ideal\", or a rate of 802.11n, width and streams in Mbit/s: 6.5, 13.0, 19.5",
        ),
        (
            "\"6.5 Mbit/s\"",
            "\"fast\"",
            "link.1.station.phone.rate: got \"fast\"; must be \"minstrel\", \"ideal\" or a rate like \"6.5 Mbit/s\"",
        ),
        (
            "\"6.5 Mbit/s\"",
            "6.5",
            "link.1.station.phone.rate: got 6.5; must be \"minstrel\", \"ideal\" or a rate like \"6.5 Mbit/s\"",
        ),
        (
            "\"35 dB\"",
            "\"-3 dB\"",
            "link.1.station.laptop.snr: got \"-3 dB\"; must be a ratio from \"0 dB\" to \"100 dB\"",
        ),
        (
            "\"35 dB\"",
            "\"101 dB\"",
            "link.1.station.laptop.snr: got \"101 dB\"; must be a ratio from \"0 dB\" to \"100 dB\"",
        ),
        (
            "\"35 dB\"",
            "35",
            "link.1.station.laptop.snr: got 35; must be a ratio from",
        ),
        (
            "\"35 dB\"",
            "\"nan dB\"",
            "link.1.station.laptop.snr: got \"nan dB\"; must be a ratio from",
        ),
        (
            "snr = \"12.5 dB\", ",
            "",
            "link.1.station.phone.fading: needs a signal that fades: must have snr beside it",
        ),
        (
            "phone = {",
            "phnoe = {",
            "link.1.station.phnoe: unknown station; did you mean \"phone\"? accepted as a station of this link: laptop, phone",
        ),
        (
            "snr = \"35 dB\"",
            "sn = \"35 dB\"",
            "link.1.station.laptop.sn: unknown key; did you mean \"snr\"? accepted by a station: rate, snr, fading",
        ),
        (
            "[\"laptop\", \"phone\"]",
            "[]",
            "link.1.to: got an empty array; must be a station like \"laptop\", or an array of 1 to 100",
        ),
        (
            "[\"laptop\", \"phone\"]",
            "[\"laptop\", \"phone\", \"phone\"]",
            "link.1.to.2: got \"phone\"; must be a station that is not listed before",
        ),
        (
            "[\"laptop\", \"phone\"]",
            "[\"laptop\", \"phone\", \"ap\"]",
            "link.1.to: got an array; must be other nodes than from",
        ),
        (
            "streams = 2",
            "queueing = \"tc\"",
            "link.1.queueing: got \"tc\"; accepted: mac80211, qdisc",
        ),
        (
            "streams = 2",
            "device_queue = \"0 packets\"",
            "link.1.device_queue: got \"0 packets\"; must be from \"1 packet\" to",
        ),
        (
            "streams = 2",
            "device_queue = \"10 packets\"",
            "link.1.device_queue: got \"10 packets\"; must be left out, unless queueing = \"qdisc\"",
        ),
        (
            "streams = 2",
            "amsdu = \"0 B\"",
            "link.1.amsdu: got \"0 B\"; must be from \"1 B\" to \"11454 B\"",
        ),
        (
            "streams = 2",
            "amsdu = \"7935 B\"",
            "link.1.amsdu: got \"7935 B\"; must be at most \"4095 B\" with 802.11n",
        ),
        (
            "\"802.11n\"\nstreams = 2",
            "\"802.11ac\"\namsdu = \"11455 B\"",
            "link.1.amsdu: got \"11455 B\"; must be from \"1 B\" to \"11454 B\"",
        ),
        (
            "\"802.11n\"\nstreams = 2",
            "\"802.11g\"\namsdu = \"3839 B\"",
            "link.1.amsdu: got \"3839 B\"; must be left out with 802.11g, which has no A-MSDU",
        ),
        (
            "streams = 2",
            "queueing = \"qdisc\"\namsdu = \"3839 B\"",
            "link.1.amsdu: got \"3839 B\"; must be left out with queueing = \"qdisc\"",
        ),
        (
            "streams = 2",
            "amsdu_packets = 4",
            "link.1.amsdu_packets: got 4; must be left out, unless amsdu is given",
        ),
        (
            "streams = 2",
            "amsdu = \"3839 B\"\namsdu_packets = 1",
            "link.1.amsdu_packets: got 1; must be a whole number from 2 to 1000",
        ),
        (
            "streams = 2",
            "kernel = \"4.9\"",
            "link.1.kernel: got \"4.9\"; must be a version of Linux like \"6.12\", from \"4.10\" to \"7.3\"",
        ),
        (
            "streams = 2",
            "kernel = \"99.99\"",
            "link.1.kernel: got \"99.99\"; must be a version of Linux like \"6.12\", from \"4.10\" to \"7.3\"",
        ),
        (
            "streams = 2",
            "kernel = \"6.20\"",
            "link.1.kernel: got \"6.20\"; must be a version of Linux",
        ),
        (
            "streams = 2",
            "kernel = \"six\"",
            "link.1.kernel: got \"six\"; must be a version of Linux",
        ),
        (
            "streams = 2",
            "rate = \"10 Mbit/s\"",
            "link.1.rate: unknown key; accepted by a link of Wi-Fi: kind, name, from, to,",
        ),
    ] {
        assert!(CELL.contains(from), "{from}");
        let error = read_text(&CELL.replacen(from, to, 1)).expect_err(to);
        let message = error.to_string();
        assert!(
            message.contains(expected),
            "{from} -> {to}\n{message}\n{expected}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Any value of a cell's key is read or refused in one line.
    #[test]
    fn any_value_at_any_key(
        key in prop::sample::select(&[
            "kind", "to", "from", "standard", "width", "streams", "guard", "station", "station.phone", "station.phone.rate",
            "station.phone.snr", "station.phone.fading", "queueing", "device_queue", "kernel", "amsdu", "amsdu_packets", "rts_above", "buffer", "queue", "up",
        ][..]),
        value in prop_oneof![
            "\\PC{0,20}",
            r"-?[0-9.]{0,20} ?(dB|MHz|ns|Mbit/s|packets|B|bdp|)",
            Just("[]".to_string()),
            Just("{ rate = 'ideal' }".to_string()),
            Just("['phone', 'laptop', 'fridge']".to_string()),
        ],
    ) {
        if let Err(error) = read_with(CELL, &[(&format!("link.wifi.{key}"), &value)]) {
            let message = error.to_string();
            prop_assert_eq!(message.lines().count(), 1, "{:?}", message);
        }
    }
}
