//! A job on several machines: the part of each, and the recording of all from theirs.
//!
//! Near hosts are on the senders, far hosts on the receivers, nodes on the router. A pair of devices whose ends are on two
//! machines becomes a MAC-VLAN on each, with the same addresses; everything else is as on one machine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::{Action, Attachment, Flow, Interface, Job};
use crate::recording::{FlowFigures, Recording};
use crate::topology::host_of;

/// What a machine is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Position {
    /// Near hosts.
    Sender,
    /// Nodes.
    Router,
    /// Far hosts.
    Receiver,
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Its name in messages.
    pub name: String,
    /// What it is.
    #[serde(rename = "role")]
    pub position: Position,
    /// The interface towards the senders; not of senders.
    #[serde(rename = "in")]
    pub inward: Option<String>,
    /// The interface towards the receivers; not of receivers.
    #[serde(rename = "out")]
    pub outward: Option<String>,
}

/// The part of each machine in a job whose namespaces have names that begin with `prefix`.
pub fn split(job: &Job, prefix: &str, machines: &[Machine]) -> Vec<Job> {
    let with = |position| {
        let all = machines.iter().enumerate();
        all.filter(move |(_, of)| of.position == position)
            .map(|(at, _)| at)
            .collect::<Vec<_>>()
    };
    let (senders, receivers) = (with(Position::Sender), with(Position::Receiver));
    let router = with(Position::Router).first().copied().unwrap_or(0);
    let machine_of = |namespace: &str| match host_of(namespace, prefix) {
        None => router,
        Some(host) => {
            let among = if host.is_far { &receivers } else { &senders };
            among
                .get(host.number % among.len().max(1))
                .map_or(router, |at| *at)
        }
    };
    let part = |(at, machine): (usize, &Machine)| {
        let mut part = Job {
            setup: Vec::new(),
            captures_back: job.captures_back && at == router,
            ..job.clone()
        };
        let is_here = |namespace: &String| machine_of(namespace) == at;
        part.namespaces.retain(is_here);
        part.bottlenecks.retain(|queue| is_here(&queue.namespace));
        part.flows
            .retain(|flow| is_here(&flow.sender) || is_here(&flow.receiver));
        for step in &job.setup {
            let action = match (&step.namespace, &step.action) {
                (Some(namespace), _) if !is_here(namespace) => continue,
                (None, Action::Namespace(name)) if !is_here(name) => continue,
                (None, Action::Connect(ends)) => {
                    match ends.each_ref().map(|end| is_here(&end.namespace)) {
                        [false, false] => continue,
                        [true, true] => step.action.clone(),
                        [true, false] => attach(machine, &ends[0], &ends[1], prefix),
                        [false, true] => attach(machine, &ends[1], &ends[0], prefix),
                    }
                }
                // What a kernel has once may belong to the machine around a container.
                (None, Action::Sysctl(values)) => Action::SysctlIfKnown(values.clone()),
                _ => step.action.clone(),
            };
            part.setup.push(crate::job::Step {
                action,
                ..step.clone()
            });
        }
        part
    };
    machines.iter().enumerate().map(part).collect()
}

/// An end of a pair on a machine. A near host's link passes the interfaces between senders and router.
fn attach(machine: &Machine, end: &Interface, other: &Interface, prefix: &str) -> Action {
    let is_far = host_of(&other.namespace, prefix).is_some_and(|host| host.is_far);
    let wire = match machine.position {
        Position::Sender => &machine.outward,
        Position::Router if is_far => &machine.outward,
        Position::Router | Position::Receiver => &machine.inward,
    };
    Action::Attach(Attachment {
        end: end.clone(),
        other: other.clone(),
        wire: wire.clone().unwrap_or_default(),
    })
}

/// The recording of a job from those of its parts, in the order of `machines`.
pub fn join(
    job: &Job,
    machines: &[Machine],
    parts: &[Job],
    recordings: Vec<Recording>,
) -> Recording {
    let mut flows: BTreeMap<u32, FlowFigures> = BTreeMap::new();
    let mut whole = Recording::default();
    for ((machine, part), of_part) in machines.iter().zip(parts).zip(recordings) {
        for (flow, figures) in part.flows.iter().zip(of_part.flows) {
            match flows.remove(&flow.number) {
                None => flows.insert(flow.number, figures),
                Some(other) => flows.insert(flow.number, both(other, figures)),
            };
        }
        let faults = of_part.faults.into_iter();
        whole
            .faults
            .extend(faults.map(|fault| format!("{}: {fault}", machine.name)));
        whole.timeouts += of_part.timeouts;
        for (link, up, lost, twice) in of_part.impaired {
            let mut known = whole.impaired.iter_mut();
            match known.find(|known| (known.0, known.1) == (link, up)) {
                Some(known) => known.2 += lost,
                None => whole.impaired.push((link, up, lost, twice)),
            }
        }
        if machine.position == Position::Router {
            whole.kernel = of_part.kernel;
            whole.events = of_part.events;
            whole.queues = of_part.queues;
            whole.packets = of_part.packets;
            whole.captured = of_part.captured;
        }
    }
    let figures = |flow: &Flow| flows.remove(&flow.number).unwrap_or_default();
    whole.flows = job.flows.iter().map(figures).map(joined).collect();
    whole
}

/// The figures of a flow from those of its two ends, each of which has zeros for what the other knows.
fn both(mut one: FlowFigures, other: FlowFigures) -> FlowFigures {
    one.sent += other.sent;
    one.received += other.received;
    one.received_before += other.received_before;
    if let (Some(all), Some(at_stop)) = (&mut one.received_at_stop, other.received_at_stop) {
        *all += at_stop;
    }
    one.retransmits += other.retransmits;
    one.seen = one.seen.or(other.seen);
    if let (Some(all), Some((sent, arrived))) = (&mut one.datagrams, other.datagrams) {
        *all = (all.0 + sent, all.1 + arrived);
    }
    one.round_trips.extend(other.round_trips);
    one.sent_ns.extend(other.sent_ns);
    one.arrived_ns.extend(other.arrived_ns);
    for (bin, (received, sender)) in one.series.iter_mut().zip(other.series) {
        *bin = (bin.0 + received, bin.1.or(sender));
    }
    one
}

/// Figures with the one-way delays that only both ends know.
fn joined(mut figures: FlowFigures) -> FlowFigures {
    let sent = std::mem::take(&mut figures.sent_ns);
    for (number, at_ns) in std::mem::take(&mut figures.arrived_ns) {
        if let Some(sent_ns) = usize::try_from(number)
            .ok()
            .and_then(|number| sent.get(number))
        {
            let delay_us = at_ns.saturating_sub(*sent_ns) / 1000;
            figures
                .one_way_us
                .push(u32::try_from(delay_us).unwrap_or(u32::MAX));
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use sojourn_measure::series::SenderState;

    use super::*;

    #[test]
    fn a_flow_has_what_each_of_its_ends_knows() {
        let window = |cwnd| SenderState {
            cwnd,
            ..SenderState::default()
        };
        let sender = FlowFigures {
            sent: 300,
            received_at_stop: Some(0),
            retransmits: 2,
            datagrams: Some((3, 0)),
            sent_ns: vec![10_000, 20_000, 30_000],
            series: vec![(0, Some(window(10))), (0, Some(window(12)))],
            ..FlowFigures::default()
        };
        let receiver = FlowFigures {
            received: 200,
            received_before: 100,
            received_at_stop: Some(150),
            datagrams: Some((0, 2)),
            seen: Some((0, 2, 2)),
            // The last arrives before it was sent: clocks are known only up to some time.
            arrived_ns: vec![(0, 15_000), (2, 29_000), (7, 40_000)],
            series: vec![(100, None), (200, None)],
            ..FlowFigures::default()
        };
        for figures in [
            both(sender.clone(), receiver.clone()),
            both(receiver, sender),
        ] {
            let whole = joined(figures);
            assert_eq!(
                (whole.sent, whole.received, whole.received_before),
                (300, 200, 100)
            );
            assert_eq!(whole.received_at_stop, Some(150));
            assert_eq!(
                (whole.datagrams, whole.seen),
                (Some((3, 2)), Some((0, 2, 2)))
            );
            assert_eq!(whole.one_way_us, [5, 0]);
            assert_eq!(
                whole.series,
                [(100, Some(window(10))), (200, Some(window(12)))]
            );
            assert_eq!((whole.sent_ns, whole.arrived_ns), (vec![], vec![]));
        }
    }
}
