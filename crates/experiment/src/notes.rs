//! What the user of an experiment may overlook, in lines.

use sojourn_units::{Duration, Rate, Value};
use sojourn_wifi::phy::error::{Snr, success};
use sojourn_wifi::{RateControl, modes};

use crate::derived::{self, Owner, group_names, is_queued, jitter, ways};
use crate::model::{Capacity, Class, Experiment, Hop, Kind, Traffic, Way};

/// Remarks on an experiment, a line each.
pub fn notes(experiment: &Experiment) -> Vec<String> {
    let mut notes = in_phase(experiment);
    notes.extend(too_short(experiment));
    notes.extend(shaped_below(experiment));
    notes.extend(promised(experiment));
    notes.extend(outlasted(experiment));
    notes.extend(out_of_reach(experiment));
    notes
}

/// Senders without jitter whose packets meet in a queue with the same period.
fn in_phase(experiment: &Experiment) -> Vec<String> {
    let names = group_names(experiment);
    // The queue, the period, the groups and the number of their flows.
    let mut meetings: Vec<(Hop, Duration, Vec<&str>, u32)> = Vec::new();
    for (traffic, name) in experiment.traffic.iter().zip(&names) {
        let Some(period) = traffic
            .kind
            .interval()
            .filter(|_| traffic.kind.is_periodic())
        else {
            continue;
        };
        for way in ways(traffic.direction) {
            if !jitter(experiment, traffic, *way).is_zero() {
                continue;
            }
            let hops = traffic.route.hops(*way).into_iter();
            for hop in hops.filter(|hop| is_queued(&experiment.links, *hop)) {
                let known = |meeting: &&mut (Hop, Duration, Vec<&str>, u32)| {
                    (meeting.0, meeting.1) == (hop, period)
                };
                match meetings.iter_mut().find(known) {
                    Some((_, _, groups, flows)) => {
                        groups.push(name);
                        *flows += traffic.flows;
                    }
                    None => meetings.push((hop, period, vec![name], traffic.flows)),
                }
            }
        }
    }
    meetings.retain(|(_, _, _, flows)| *flows > 1);
    meetings.dedup_by(|one, other| one.2 == other.2);
    let line = |(hop, period, groups, _): &(Hop, Duration, Vec<&str>, u32)| {
        let groups = groups.join(", ");
        let link = &experiment.links[hop.link].name;
        format!(
            "{groups}: every sender has a period of exactly {period} (jitter = \"0 s\"), so that they stay in phase: \
             when a queue of {link} is full, it may always drop the packets of the same one"
        )
    };
    meetings.iter().map(line).collect()
}

/// Groups whose first data arrives after the end of the run, of which nothing is sent after the warm-up, or whose stop would
/// come after the end.
fn too_short(experiment: &Experiment) -> Vec<String> {
    let line = |(traffic, name): (&Traffic, String)| {
        let arrives = traffic.start.0 + first_arrival(experiment, traffic);
        if arrives >= experiment.duration {
            let duration = experiment.duration;
            return Some(format!(
                "{name}: its first data arrives at {arrives} or later, but the run ends at {duration}"
            ));
        }
        if traffic.stop <= experiment.warmup {
            let (stop, warmup) = (traffic.stop, experiment.warmup);
            return Some(format!(
                "{name}: stops at {stop}, but statistics begin with the end of the warm-up at {warmup}"
            ));
        }
        traffic.late_stop.map(|stop| {
            let duration = experiment.duration;
            format!("{name}: its stop is at {stop}, but the run ends at {duration}, and its traffic with it")
        })
    };
    let groups = experiment.traffic.iter().zip(group_names(experiment));
    groups.filter_map(line).collect()
}

/// The time from the start of a flow to the first result of it: data over TCP comes after a handshake, for pings the reply
/// counts.
fn first_arrival(experiment: &Experiment, traffic: &Traffic) -> Duration {
    let one_way = traffic.route.delay(&experiment.links);
    match &traffic.kind {
        Kind::Ping(_) => traffic.rtt,
        kind if kind.tcp().is_some() => traffic.rtt + one_way,
        _ => one_way,
    }
}

/// Links whose discipline has a lower rate of its own.
fn shaped_below(experiment: &Experiment) -> Vec<String> {
    let mut notes = Vec::new();
    for (queue, under_test) in experiment.queues.iter().enumerate() {
        for egress in derived::queues(experiment, queue) {
            let Some(bandwidth) = own_bandwidth(&egress.arm.aqm, &egress.arm.settings) else {
                continue;
            };
            let rate = egress.capacity.nominal();
            if bandwidth < rate {
                let label = match egress.owner {
                    // The other direction's part of an arm has no label of its own.
                    Owner::Comparison | Owner::ComparisonUp => under_test.label.as_str(),
                    Owner::Link | Owner::Up => egress.arm.aqm.as_str(),
                };
                notes.push(format!(
                    "{label}: utilization is the share of the link's {rate} ({}); its own {} of {bandwidth} is {:.3} of that",
                    egress.key(),
                    if egress.arm.aqm == "policer" { "rate" } else { "bandwidth" },
                    bandwidth.as_bps() as f64 / rate.as_bps() as f64,
                ));
            }
        }
    }
    notes
}

/// Classes that promise those below them more than they may send.
fn promised(experiment: &Experiment) -> Vec<String> {
    let classes = &experiment.classes;
    let way = |way: Way| {
        let mut promised = vec![0; classes.len()];
        for class in classes {
            if let Some(parent) = class.parent {
                promised[parent] += class.share(way).rate.as_bps();
            }
        }
        let line = move |(class, promised): (&Class, u64)| {
            let ceil = class.share(way).ceil;
            let sum = Rate::from_bps(promised)?;
            (sum > ceil).then(|| {
                let (name, way) = (&class.name, way.name());
                format!("class {name}: the rates of the classes below it add up to {sum} {way}, more than its ceil of {ceil}, which HTB then exceeds")
            })
        };
        classes
            .iter()
            .zip(promised)
            .filter_map(line)
            .collect::<Vec<_>>()
    };
    [Way::Down, Way::Up].into_iter().flat_map(way).collect()
}

/// Rates of a schedule that last for less than a full packet takes.
fn outlasted(experiment: &Experiment) -> Vec<String> {
    let mut notes = Vec::new();
    for egress in derived::queues(experiment, 0) {
        let Capacity::Steps(steps) = egress.capacity else {
            continue;
        };
        let frame = derived::frame(experiment, egress.link);
        for pair in steps.windows(2) {
            let [(from, rate), (to, _)] = [pair[0], pair[1]];
            let (takes, lasts) = (rate.tx_time(frame.into()), to.saturating_sub(from));
            if takes > lasts {
                notes.push(format!(
                    "{}.rate: at {rate} a full packet takes {takes}, but this rate lasts for {lasts}: a packet that leaves \
                     meanwhile holds the link for all of its time (on Linux for a minute at most); a pause is a gap in a trace",
                    egress.key(),
                ));
            }
        }
    }
    notes
}

/// The rate to which a discipline shapes.
fn own_bandwidth(aqm: &str, settings: &[(String, Value)]) -> Option<Rate> {
    let key = match aqm {
        "cake" => "bandwidth",
        "policer" => "rate",
        _ => return None,
    };
    let given = settings.iter().find(|(known, _)| known == key)?;
    match given.1 {
        Value::Rate(rate) => Some(rate),
        _ => None,
    }
}

/// A frame of this many bytes is what a station must be able to receive.
const FULL_FRAME: u32 = 1538;

/// Stations of Wi-Fi whose signal carries no rate at which they may be sent to.
fn out_of_reach(experiment: &Experiment) -> Vec<String> {
    let mut notes = Vec::new();
    for link in &experiment.links {
        let (Some(wifi), Some(nodes)) = (&link.wifi, &link.nodes) else {
            continue;
        };
        for (station, name) in wifi.stations.iter().zip(&nodes.to) {
            let Some(snr_db) = station.snr_db else {
                continue;
            };
            let modes = match station.rate {
                RateControl::Fixed(mode) => vec![mode],
                _ => modes(wifi.standard, wifi.width, wifi.streams, wifi.guard),
            };
            let received = |db: f64| {
                let chances = modes
                    .iter()
                    .map(|mode| success(*mode, Snr::from_db(db), FULL_FRAME));
                chances.fold(0.0, f64::max)
            };
            if received(snr_db) < 0.01 {
                let least = (0..=120).map(f64::from).find(|db| received(*db) > 0.5);
                let needed = least.map_or_else(String::new, |db| {
                    format!("; half of all frames arrive from about {db} dB on")
                });
                notes.push(format!(
                    "station {name} of {}: no rate carries {snr_db} dB, which applies to 20 MHz and one stream{needed}",
                    link.name
                ));
            }
        }
    }
    notes
}
