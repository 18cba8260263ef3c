//! Turns a finished simulation into its results.

use std::collections::BTreeMap;

use sojourn_measure::probe::QueueProbe;
use sojourn_measure::summary::{Measured, summarise as figures};
use sojourn_units::{Rate, Time};

use crate::result::{RunResult, Table};
use crate::sampler::hop_in_cells;
use crate::simulation::{Endpoints, Simulation};
use crate::traffic::FlowEndpoints;

/// The results of a finished simulation, without the names of the arm.
pub fn summarise(simulation: Simulation) -> RunResult {
    let Simulation {
        scope,
        cells,
        network,
        hosts: Endpoints { sources, .. },
        sampler,
        events,
    } = simulation;
    let mut sources = sources;
    let qlogs = (0..).zip(&mut sources);
    let qlogs = qlogs.filter_map(|(flow, source)| Some((flow, source.take_qlog()?)));
    let qlogs = qlogs.collect();
    // The connections go before the results take their memory.
    let mut meters: Vec<_> = sources.into_iter().map(FlowEndpoints::into_meter).collect();
    for (number, meter) in meters.iter_mut().enumerate() {
        if let Some(packets) = &mut meter.packets {
            let lost = network.observer.lost.get(number);
            let lost = lost.map_or(0, |lost| lost.count);
            packets.on_their_way = packets.sent - packets.arrived - lost;
        }
    }
    let end = Time::ZERO + scope.duration;
    let spared = network.spared_events();
    let links = network.links();
    let figures_of = |(number, probe): (usize, &QueueProbe)| {
        if let Some(link) = links.get(number) {
            let mut figures = probe.figures(link.utilization(), link.marked());
            for (index, name) in link.qdisc().inner_queues().iter().enumerate() {
                let inner = figures.queues.get_mut(name);
                if let Some((inner, given)) = inner.zip(link.qdisc().inner_settings(index)) {
                    inner.threshold_bps = given.threshold.map(Rate::as_bps);
                    inner.target_ms = Some(given.target.as_millis_f64());
                    inner.interval_ms = Some(given.interval.as_millis_f64());
                }
            }
            return figures;
        }
        let (cell, way) = hop_in_cells(number - links.len());
        let cell = &network.media()[cell];
        probe.figures(cell.utilization(way, end), cell.marked(way))
    };
    let queues = network.observer.probes.iter().enumerate().map(figures_of);
    let mut queues: Vec<_> = scope.queues.iter().copied().zip(queues).collect();
    let mut lost = BTreeMap::new();
    for of in &network.observer.impaired {
        match queues.iter_mut().find(|(hop, _)| *hop == of.hop) {
            Some((_, figures)) => {
                figures.lost_packets = Some(of.lost);
                figures.duplicated_packets = Some(of.duplicated);
            }
            None => {
                let name = &scope.links[of.hop.link];
                lost.insert(format!("{name}/{}", of.hop.way.name()), of.lost);
            }
        }
    }
    let cells = || cells.iter().zip(network.media());
    let media = cells().filter_map(|((link, _), cell)| cell.medium_table(*link));
    let media = media.reduce(Table::stacked);
    let cells = cells().map(|((link, stations), cell)| (*link, cell.figures(stations, end)));
    let cells = cells.collect();
    let measured = Measured {
        queues,
        cells,
        media,
        probes: network.observer.probes,
        meters: meters.iter_mut().map(|meter| &mut **meter).collect(),
        series: sampler.into_series(),
        capture: network.observer.capture.map(|capture| capture.into_bytes()),
    };
    RunResult {
        events: events + spared,
        lost_packets: lost,
        qlogs,
        ..figures(&scope, measured)
    }
}
