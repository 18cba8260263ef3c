//! What the host may ask for.

use serde::Deserialize;

/// A request, as `{"do": "advance", "until_s": 2.5}`.
#[derive(Deserialize, Debug)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The version, the names accepted in a file, the schema of the file, the registry of metrics.
    About,
    /// Reads an experiment file and forgets the run under way. The reply lists its arms, cells and seeds, and the numbers
    /// of swept values that have units.
    Read {
        /// The file's name in messages.
        name: String,
        /// Its content.
        text: String,
        /// Keys that replace those of the file.
        #[serde(default)]
        set: Vec<(String, String)>,
    },
    /// Begins a run of the file. The reply describes it: queues, flows, settings of the queues.
    Begin {
        /// The run's number, in the order of results: cells, then seeds, then arms.
        run: usize,
        /// Whether what happens to packets is to be noted.
        #[serde(default)]
        watch: bool,
    },
    /// Continues the run.
    Advance {
        /// To this instant, or to the run's end if that is earlier; without one, to the end.
        until_s: Option<f64>,
        /// For at most so many events, so that the host regains control.
        events: Option<u64>,
    },
    /// The state of queues and flows, with what has happened since the last observation.
    Observe,
    /// Changes a key of the run, written as in a file.
    Set {
        /// The key, dotted: `link.rate`, `queue.target`.
        key: String,
        /// Its value, as text: `10 ms`.
        value: String,
    },
    /// Ends the run, to the end of its time first. The reply has its element of summary.json, and recorded tables.
    Finish,
}
