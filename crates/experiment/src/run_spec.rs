//! One run as a value: it can be stored, sent, compared, and identified by a hash.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use sojourn_units::{Capacity, Duration, TextFile, Trace, Value};

use crate::context::Context;
use crate::document::{self, path_segment};
use crate::effort::{effort, packets, progress, queued_packets};
use crate::entry::Entry;
use crate::error::{Origin, ReadError};
use crate::form::Form;
use crate::input;
use crate::model::{Experiment, Queue};
use crate::names::Names;
use crate::read::File;
use crate::resolved::{InUse, resolved_with};
use crate::unknown::unknown_key;

/// The version of results. Every change that alters the result of a run raises it. Runs of different versions have
/// different hashes.
pub const RESULTS_VERSION: u32 = 1;

/// The version of run documents.
const FORMAT: u64 = 1;

/// The largest run document: an experiment file with its traces.
const MOST_BYTES: u64 = 64_000_000;

/// One run: an experiment, one of its arms, and a seed.
#[derive(Clone, PartialEq, Debug)]
pub struct RunSpec {
    /// The experiment of one combination of swept values. Its `repeat` and `seed` are ignored.
    pub experiment: Arc<Experiment>,
    /// The number of the arm.
    pub queue: usize,
    /// The seed.
    pub seed: u64,
    /// The swept keys and their values. They name results and do not affect the run.
    pub set: Vec<(String, Json)>,
}

/// An element of `runs` in summary.json.
#[derive(Serialize)]
struct Element<'a, T> {
    #[serde(flatten)]
    result: &'a T,
    /// The swept keys and their values.
    set: &'a Json,
}

/// A run's result as an element of `runs` in summary.json; `set` holds the swept values of its cell.
///
/// # Errors
/// The result does not serialise as an object.
pub fn summary_json<T: Serialize>(result: &T, set: &Json) -> serde_json::Result<String> {
    serde_json::to_string(&Element { result, set })
}

impl RunSpec {
    /// The swept keys and their values, as an object.
    pub fn set_json(&self) -> Json {
        let set = self.set.iter().cloned();
        set.collect::<serde_json::Map<_, _>>().into()
    }

    /// The arm.
    pub fn arm(&self) -> &Queue {
        &self.experiment.queues[self.queue]
    }

    /// Its experiment with only this arm and this seed, without repeats.
    pub fn alone(&self) -> Experiment {
        Experiment {
            repeat: 1,
            seed: self.seed,
            queues: vec![self.arm().clone()],
            ..Experiment::clone(&self.experiment)
        }
    }

    /// What the run costs, to be compared with other runs: in TCP segments, some 0.12 µs of a processor each.
    pub fn effort(&self) -> f64 {
        effort(&self.experiment)
    }

    /// The part of the run's packets, estimated, that is sent before an instant: its cost beside that of the whole run.
    pub fn progress(&self, at: Duration) -> f64 {
        progress(&self.experiment, at)
    }

    /// The packets that the traffic sends, estimated, without acknowledgements.
    pub fn packets(&self) -> f64 {
        packets(&self.experiment)
    }

    /// The packets that enter queues, estimated, one per queue and with acknowledgements: rows of a table of packets.
    pub fn queued_packets(&self) -> f64 {
        queued_packets(&self.experiment)
    }

    /// The run as one object that [`RunSpec::read`] reads: its experiment with every default and this arm only, the
    /// traces, and the swept values. The experiment's `seed` is that of the run. `in_use` holds the values that the
    /// disciplines of [`RunSpec::alone`] use.
    pub fn document(&self, in_use: &InUse) -> Json {
        let only = self.alone();
        let mut document = json!({
            "format": FORMAT,
            "results": RESULTS_VERSION,
            "experiment": resolved_with(&only, in_use),
            "set": self.set.iter().cloned().collect::<serde_json::Map<_, _>>(),
        });
        let traces: BTreeMap<&str, String> = traces(&only).collect();
        if !traces.is_empty() {
            document["traces"] = json!(traces);
        }
        let files: BTreeMap<&str, &str> = files(&only).collect();
        if !files.is_empty() {
            document["files"] = json!(files);
        }
        document
    }

    /// Reads a [`RunSpec::document`].
    ///
    /// # Errors
    /// It is not a run document, has another results version, or uses a name missing from `names`.
    pub fn read(document: &str, names: &Names) -> Result<Self, ReadError> {
        let refuse = |what: String| ReadError::new("run", Origin::File, "", what);
        if document.len() as u64 > MOST_BYTES {
            return Err(refuse(input::too_large(MOST_BYTES)));
        }
        let document: Json = serde_json::from_str(document)
            .map_err(|error| refuse(format!("not the document of a run: {error}")))?;
        for (key, known) in [("format", FORMAT), ("results", RESULTS_VERSION.into())] {
            if document[key].as_u64() != Some(known) {
                let got = &document[key];
                return Err(refuse(format!("{key}: got {got}; must be {known}")));
            }
        }
        let known = [
            "format",
            "results",
            "experiment",
            "set",
            "traces",
            "files",
            "own",
        ];
        let mut keys = document.as_object().into_iter().flat_map(|all| all.keys());
        if let Some(key) = keys.find(|key| !known.contains(&key.as_str())) {
            let what = unknown_key(key, known, "the document of a run");
            let path = path_segment(key);
            return Err(ReadError::new("run", Origin::File, &path, what));
        }
        let context = Context::new("run", names);
        for (name, text) in document["traces"].as_object().into_iter().flatten() {
            let trace = Trace::parse(name, text.as_str().unwrap_or_default())
                .map_err(|error| refuse(format!("trace \"{name}\": must be {}", error.must)))?;
            context.add_trace(trace);
        }
        for (name, text) in document["files"].as_object().into_iter().flatten() {
            context.add_file(TextFile {
                name: name.clone(),
                text: text.as_str().unwrap_or_default().into(),
            });
        }
        let given = |what: &str, name: &str| !document[what][name].is_null();
        let root = document::from_json(&document["experiment"]);
        let experiment = File.read(&Entry::root(&root, &context))?;
        if experiment.queues.len() != 1 {
            let got = experiment.queues.len();
            return Err(refuse(format!("queue: got {got} arms; must be one")));
        }
        if let Some((name, _)) = traces(&experiment).find(|(name, _)| !given("traces", name)) {
            return Err(refuse(format!("traces: has no \"{name}\"")));
        }
        if let Some((name, _)) = files(&experiment).find(|(name, _)| !given("files", name)) {
            return Err(refuse(format!("files: has no \"{name}\"")));
        }
        let set = match &document["set"] {
            Json::Object(set) => set.clone(),
            Json::Null => serde_json::Map::new(),
            got => return Err(refuse(format!("set: got {got}; must be a table"))),
        };
        Ok(Self {
            queue: 0,
            seed: experiment.seed,
            experiment: Arc::new(experiment),
            set: set.into_iter().collect(),
        })
    }
}

/// What the hash of a run is of, given its [`RunSpec::document`]: all that determines the result, without
/// the names of the experiment and the arm and the list of swept values, so that equal runs have equal hashes
/// everywhere. The hash is the [`sha256`] of its text.
pub fn hashed(mut document: Json) -> Json {
    document["set"].take();
    document["experiment"]["experiment"]["name"].take();
    document["experiment"]["queue"][0]["label"].take();
    document
}

/// SHA-256 of a text, in hexadecimal.
pub fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The files of an experiment's disciplines, by name with their text.
fn files(experiment: &Experiment) -> impl Iterator<Item = (&str, &str)> {
    let owned = experiment.links.iter().flat_map(|link| {
        let up = link.up.as_ref().and_then(|up| up.queue.as_ref());
        [link.queue.as_ref(), up]
    });
    let arms = experiment.queues.iter();
    let arms = arms.flat_map(|arm| [Some(arm), arm.up.as_deref()]);
    let settings = arms.chain(owned).flatten().flat_map(|arm| &arm.settings);
    settings.filter_map(|(_, value)| match value {
        Value::File(file) => Some((file.name.as_str(), &*file.text)),
        _ => None,
    })
}

/// The traces of an experiment's links, with their file names.
fn traces(experiment: &Experiment) -> impl Iterator<Item = (&str, String)> {
    let capacities = experiment
        .links
        .iter()
        .flat_map(|link| [Some(&link.rate), link.up.as_ref().map(|up| &up.rate)]);
    capacities.flatten().filter_map(|capacity| match capacity {
        Capacity::Trace(trace) => Some((trace.file.as_str(), trace.text())),
        Capacity::Steps(_) => None,
    })
}
