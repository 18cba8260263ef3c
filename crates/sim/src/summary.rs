//! What a simulation amounts to.

use sojourn_measure::summary::{Measured, summarise as figures};

use crate::result::RunResult;
use crate::simulation::{Endpoints, Simulation};

/// The results of a simulation that has ended, without the names of the arm.
pub fn summarise(simulation: Simulation) -> RunResult {
    let Simulation {
        scope,
        network,
        hosts: Endpoints { mut sources, .. },
        sampler,
        events,
    } = simulation;
    let watched = network.links().iter().zip(&network.observer.probes);
    let queues = watched
        .zip(&scope.queues)
        .map(|((link, probe), queue)| (*queue, probe.figures(link.utilization(), link.marked())));
    let measured = Measured {
        queues: queues.collect(),
        probes: network.observer.probes,
        meters: sources.iter_mut().map(|source| source.meter()).collect(),
        series: sampler.into_series(),
        capture: network.observer.capture.map(|capture| capture.into_bytes()),
    };
    RunResult {
        events,
        ..figures(&scope, measured)
    }
}
