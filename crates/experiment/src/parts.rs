//! The queues and flows of a run, described for whoever watches it.

use serde_json::{Value as Json, json};

use crate::{RunSpec, derived};

/// The names of the queues of a run, in the order of observations.
pub fn queues(spec: &RunSpec) -> Vec<Json> {
    let egresses = derived::queues(&spec.experiment, spec.queue);
    let named = |egress: &derived::Egress<'_>| {
        let way = egress.hop.way.name();
        json!({
            "name": egress.name(),
            "key": egress.key(),
            "link": egress.link.name,
            "direction": way,
            "aqm": egress.arm.aqm,
            "wifi": egress.link.wifi.is_some(),
            "compared": egress.is_compared(),
        })
    };
    egresses.iter().map(named).collect()
}

/// The flows of a run, in the order of their numbers.
pub fn flows(spec: &RunSpec) -> Vec<Json> {
    let names = derived::group_names(&spec.experiment);
    let described = |flow: derived::Flow<'_>| {
        json!({
            "group": flow.group,
            "name": names[flow.group],
            "kind": flow.traffic.kind.name(),
            "tcp": flow.traffic.kind.tcp().map(|tcp| &tcp.congestion_control),
            "within": flow.within,
            "direction": flow.way.name(),
            "rtt_ms": flow.traffic.rtt.as_millis_f64(),
        })
    };
    derived::flows(&spec.experiment, spec.seed)
        .map(described)
        .collect()
}
