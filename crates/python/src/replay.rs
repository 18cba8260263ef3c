//! A recorded queue through a discipline.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use sojourn_aqm::replay::{self, Divergence, Event, Recorded};
use sojourn_aqm::{Catalogue, Limit, Settings};
use sojourn_experiment::model::{Buffer, Experiment};

use crate::errors::ExperimentError;
use crate::plan::Plan;

/// A full frame on Ethernet, as the recordings count it.
const FRAME: u32 = 1514;

/// Replays events through the first queue of a plan; the arrays have an element per event, `departs` is 0
/// for an arrival. Returns the outcome as JSON.
#[pyfunction]
pub fn replay_json(
    py: Python<'_>,
    plan: &Plan,
    departs: PyReadonlyArray1<'_, u8>,
    ids: PyReadonlyArray1<'_, u64>,
    t_us: PyReadonlyArray1<'_, u64>,
    bytes: PyReadonlyArray1<'_, u32>,
) -> PyResult<String> {
    let settings = settings(plan.first())?;
    let (departs, ids) = (departs.as_slice()?, ids.as_slice()?);
    let (t_us, bytes) = (t_us.as_slice()?, bytes.as_slice()?);
    let events = departs.iter().zip(ids).zip(t_us).zip(bytes);
    let events = events.map(|(((departs, id), t_us), bytes)| match departs {
        0 => Event::Enqueue {
            id: *id,
            t_us: *t_us,
            bytes: *bytes,
        },
        _ => Event::Dequeue {
            id: *id,
            t_us: *t_us,
        },
    });
    let catalogue = Catalogue::<Recorded>::new();
    let experiment = plan.first();
    let name = &experiment.queues[0].aqm;
    let refused = |what: String| ExperimentError::new_err(format!("replay: {name}: {what}"));
    let discipline = catalogue.get(name);
    let discipline = discipline.ok_or_else(|| refused("cannot be replayed".into()))?;
    let mut qdisc = (discipline.build)(&settings).map_err(|error| refused(error.to_string()))?;
    let outcome = py.detach(|| replay::replay(qdisc.as_mut(), events, experiment.seed));
    Ok(json!({
        "enqueued": outcome.enqueued,
        "dequeued": outcome.dequeued,
        "dropped_recorded": outcome.dropped_recorded,
        "dropped_ours": outcome.dropped_ours,
        "agree": outcome.agree,
        "first_divergence": outcome.first_divergence.map(divergence),
    })
    .to_string())
}

fn divergence(divergence: Divergence) -> Json {
    json!({
        "event": divergence.event,
        "t_us": divergence.t_us,
        "expected": divergence.expected,
        "got": divergence.got,
    })
}

fn settings(experiment: &Experiment) -> PyResult<Settings> {
    let arm = &experiment.queues[0];
    let mut settings = Settings::new(experiment.link.rate[0].1, FRAME);
    settings.limit = match arm.limit.or(experiment.link.buffer) {
        None => None,
        Some(Buffer::Packets(packets)) => Some(Limit::Packets(packets)),
        Some(Buffer::Bytes(bytes)) => Some(Limit::Bytes(bytes)),
        Some(Buffer::Bdp(_)) => {
            return Err(ExperimentError::new_err(
                "replay: limit: a recording has no base RTT; must be packets or bytes",
            ));
        }
    };
    settings.values.clone_from(&arm.settings);
    Ok(settings)
}
