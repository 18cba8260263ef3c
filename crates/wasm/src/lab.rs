//! One file and at most one of its runs.

use serde_json::{Map, Value as Json, json};
use sojourn_experiment::{
    Names, Plan, RunSpec, Source, derived, notes, parts, read, schema, summary_json,
};
use sojourn_measure::metrics::METRICS;
use sojourn_sim::{Catalogue, Session, catalogue, check, lists, names, refusal};
use sojourn_units::{Duration, Time, quantity};

use crate::answers;
use crate::request::Request;

/// The values of an event: the queue's number, what happened ([`Happened`](sojourn_sim::Happened)), the flow's number,
/// bytes, whether the packet travels towards the sender of the data, the instant and that of its arrival in seconds.
pub const EVENT_VALUES: usize = 7;

/// Lists in the reply to [`Request::Read`] that are longer end here; the counts beside them tell.
const MOST_LISTED: usize = 10_000;

/// One file and at most one of its runs.
pub struct Lab {
    names: Names,
    catalogue: Catalogue,
    plan: Option<Plan>,
    session: Option<Session>,
}

impl Default for Lab {
    fn default() -> Self {
        Self {
            names: names(),
            catalogue: catalogue(),
            plan: None,
            session: None,
        }
    }
}

impl Lab {
    /// Answers a request with the text of a JSON object.
    pub fn call(&mut self, request: &[u8]) -> String {
        match serde_json::from_slice(request) {
            // The summary is passed on as text: as a tree its keys would change their order.
            Ok(Request::Finish) => self.finish().unwrap_or_else(|error| error.to_string()),
            Ok(request) => self
                .answer(request)
                .unwrap_or_else(|error| error)
                .to_string(),
            Err(error) => answers::refused(&format!("not a request: {error}")).to_string(),
        }
    }

    fn answer(&mut self, request: Request) -> Result<Json, Json> {
        match request {
            Request::About => Ok(self.about()),
            Request::Read { name, text, set } => self.read(&name, &text, &set),
            Request::Begin { run, watch } => self.begin(run, watch),
            Request::Advance { until_s, events } => {
                let session = self.session()?;
                let until = until_s.map_or(session.end(), |seconds| {
                    Time::ZERO + Duration::from_secs_f64(seconds)
                });
                session.advance(until, events.unwrap_or(u64::MAX));
                Ok(json!({
                    "now_s": session.now().as_secs_f64(),
                    "end_s": session.end().as_secs_f64(),
                    "finished": session.is_finished(),
                }))
            }
            Request::Observe => {
                let seen = self.session()?.observe();
                Ok(json!({
                    "since_s": seen.since.as_secs_f64(),
                    "now_s": seen.now.as_secs_f64(),
                    "queues": seen.queues.iter().map(answers::queue).collect::<Vec<_>>(),
                    "flows": seen.flows.iter().map(answers::flow).collect::<Vec<_>>(),
                }))
            }
            Request::Set { key, value } => {
                let session = self.session.as_mut().ok_or_else(no_run)?;
                let set = session.set(&key, &value, &self.catalogue);
                set.map_err(|error| answers::refused(&error.to_string()))?;
                Ok(json!({}))
            }
            Request::Finish => unreachable!("answered as text"),
        }
    }

    fn about(&self) -> Json {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "disciplines": lists::disciplines(&self.catalogue),
            "congestion_controls": lists::congestion_controls(&self.catalogue),
            "traffic": lists::traffic(),
            "metrics": METRICS,
            "schema": schema(&self.names),
        })
    }

    fn read(&mut self, name: &str, text: &str, set: &[(String, String)]) -> Result<Json, Json> {
        self.plan = None;
        self.session = None;
        let plan = read(Source { name, text }, set, &self.names)
            .map_err(|error| answers::mistake(&error))?;
        for (cell, found) in plan.cells.iter().enumerate() {
            for queue in 0..found.experiment.queues.len() {
                check(&found.experiment, queue, &self.catalogue).map_err(|error| match refusal(
                    &plan,
                    (cell, queue),
                    &error,
                    &self.catalogue,
                ) {
                    Some(refused) => answers::mistake(&refused),
                    None => answers::refused(&error.to_string()),
                })?;
            }
        }
        let first = &plan.cells[0].experiment;
        let mut told: Vec<String> = Vec::new();
        for note in plan.cells.iter().flat_map(|cell| notes(&cell.experiment)) {
            if !told.contains(&note) {
                told.push(note);
            }
        }
        let mut numbers = Map::new();
        for (_, value) in plan.specs().take(MOST_LISTED).flat_map(|spec| spec.set) {
            if let Some((number, _)) = value.as_str().and_then(quantity) {
                numbers.insert(value.as_str().unwrap_or_default().to_owned(), number.into());
            }
        }
        let listed = plan.specs().take(MOST_LISTED);
        let reply = json!({
            "name": first.name,
            "count": plan.runs(),
            "effort": plan.specs().take(MOST_LISTED).map(|spec| spec.effort()).sum::<f64>(),
            "arms": first.queues.iter().map(|arm| json!({
                "label": arm.label,
                "aqm": arm.aqm,
            })).collect::<Vec<_>>(),
            "groups": derived::group_names(first),
            "numbers": numbers,
            "runs": listed.map(|spec| json!({
                "label": spec.arm().label,
                "seed": spec.seed,
                "set": spec.set_json(),
                "duration_s": spec.experiment.duration.as_secs_f64(),
            })).collect::<Vec<_>>(),
            "notes": told,
        });
        self.plan = Some(plan);
        Ok(reply)
    }

    fn begin(&mut self, run: usize, watch: bool) -> Result<Json, Json> {
        let plan = self
            .plan
            .as_ref()
            .ok_or_else(|| answers::refused("no file was read"))?;
        let spec = plan
            .specs()
            .nth(run)
            .ok_or_else(|| answers::refused("no such run"))?;
        let reply = json!({
            "label": spec.arm().label,
            "seed": spec.seed,
            "set": spec.set_json(),
            "duration_s": spec.experiment.duration.as_secs_f64(),
            "warmup_s": spec.experiment.warmup.as_secs_f64(),
            "queues": parts::queues(&spec),
            "flows": parts::flows(&spec),
            "settings": self.settings(&spec),
        });
        let mut session = Session::new(spec, &self.catalogue)
            .map_err(|error| answers::refused(&error.to_string()))?;
        if watch {
            session.watch_packets();
        }
        self.session = Some(session);
        Ok(reply)
    }

    /// The run's experiment with the values that its disciplines use.
    fn settings(&self, spec: &RunSpec) -> Json {
        sojourn_sim::document(spec, &self.catalogue)
            .map_or(Json::Null, |mut document| document["experiment"].take())
    }

    fn finish(&mut self) -> Result<String, Json> {
        let session = self.session.take().ok_or_else(no_run)?;
        let set = session.spec().set_json();
        let mut result = session.finish();
        let tables = json!({
            "histogram": result.histogram.take().map(answers::table),
            "queue_series": result.queue_series.take().map(answers::table),
            "flow_series": result.flow_series.take().map(answers::table),
        });
        let summary =
            summary_json(&result, &set).map_err(|error| answers::refused(&error.to_string()))?;
        Ok(format!("{{\"summary\":{summary},\"tables\":{tables}}}"))
    }

    fn session(&mut self) -> Result<&mut Session, Json> {
        self.session.as_mut().ok_or_else(no_run)
    }

    /// Takes what has happened to packets since the last call, [`EVENT_VALUES`] numbers each.
    pub fn take_events(&mut self, into: &mut Vec<f64>) {
        let Some(session) = &mut self.session else {
            return;
        };
        for (queue, events) in session.take_events().into_iter().enumerate() {
            for event in events {
                let values: [f64; EVENT_VALUES] = [
                    queue as f64,
                    f64::from(event.what as u8),
                    f64::from(event.flow),
                    f64::from(event.bytes),
                    f64::from(u8::from(event.returning)),
                    event.time.as_secs_f64(),
                    event.entered.as_secs_f64(),
                ];
                into.extend(values);
            }
        }
    }
}

fn no_run() -> Json {
    answers::refused("no run is under way")
}
