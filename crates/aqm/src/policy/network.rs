//! A small neural network, read from a file, that decides about the probability at fixed intervals.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value as Json;
use sojourn_units::{Duration, Kind, Value};

/// The numbers that a network may have as inputs, in this order. All but `probability` are those of an observation
/// of a run: counts since the last decision, and the state now.
pub const INPUTS: [&str; 10] = [
    "packets",
    "sojourn_mean_ms",
    "sojourn_max_ms",
    "backlog_packets",
    "backlog_bytes",
    "dropped",
    "marked",
    "utilisation",
    "backlog_ms",
    "probability",
];

/// The most numbers of a layer, and the most layers.
const WIDEST: usize = 4096;
const DEEPEST: usize = 16;

/// A network with rectified linear units between its layers, and what its outputs mean.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    /// The time between decisions.
    pub interval: Duration,
    /// Inputs, as indices in [`INPUTS`].
    inputs: Vec<usize>,
    layers: Vec<Layer>,
    output: Output,
    /// The largest probability.
    most: f64,
    /// The numbers of two layers.
    work: [Vec<f64>; 2],
}

/// A layer: a row of weights per output.
#[derive(Clone, PartialEq, Debug)]
struct Layer {
    weights: Vec<Vec<f64>>,
    bias: Vec<f64>,
}

/// What the outputs mean.
#[derive(Clone, PartialEq, Debug)]
enum Output {
    /// One, the probability.
    Probability,
    /// One per change of the probability; the largest is made, of equals the first.
    Changes(Vec<f64>),
}

impl Network {
    /// Reads a file of weights.
    ///
    /// # Errors
    /// What is wrong, and what is accepted.
    pub fn read(text: &str) -> Result<Self, String> {
        let file = serde_json::from_str(text);
        let file: Json = file.map_err(|error| format!("not JSON: {error}"))?;
        let part = |key: &str| file.get(key).ok_or_else(|| format!("has no \"{key}\""));
        let interval = part("interval")?.as_str().unwrap_or_default();
        let interval = match Kind::Duration.parse(interval) {
            Ok(Value::Duration(span)) if span >= Duration::from_micros(1) => span,
            _ => {
                let accepts = Kind::Duration.accepts();
                return Err(format!("interval: must be {accepts}, at least 1 us"));
            }
        };
        let names = list(part("inputs")?);
        let index = |name: &Json| {
            INPUTS
                .iter()
                .position(|known| Some(*known) == name.as_str())
        };
        let inputs: Option<Vec<usize>> = names.iter().map(index).collect();
        let inputs = inputs.filter(|inputs| (1..=WIDEST).contains(&inputs.len()));
        let inputs =
            inputs.ok_or_else(|| format!("inputs: must be some of {}", INPUTS.join(", ")))?;
        let output = match part("output")? {
            Json::String(word) if word == "probability" => Some(Output::Probability),
            changes => numbers(changes).map(Output::Changes),
        };
        let output = output.ok_or("output: must be \"probability\" or a list of changes of it")?;
        let outputs = match &output {
            Output::Probability => 1,
            Output::Changes(changes) => changes.len(),
        };
        let most = file.get("most").map_or(Some(1.0), Json::as_f64);
        let most = most.filter(|most| (0.0..=1.0).contains(most));
        let most = most.ok_or("most: must be a number from 0 to 1")?;
        let layers = list(part("layers")?);
        if !(1..=DEEPEST).contains(&layers.len()) {
            return Err(format!("layers: must be 1 to {DEEPEST} tables"));
        }
        let mut width = inputs.len();
        let mut read = Vec::with_capacity(layers.len());
        for (number, layer) in layers.iter().enumerate() {
            let is_last = number + 1 == layers.len();
            let layer = Layer::read(layer, width, is_last.then_some(outputs));
            let layer = layer.map_err(|what| format!("layers.{number}: {what}"))?;
            width = layer.bias.len();
            read.push(layer);
        }
        let widest = read.iter().map(|layer| layer.bias.len()).max();
        let widest = widest.unwrap_or(0).max(inputs.len());
        Ok(Self {
            interval,
            inputs,
            layers: read,
            output,
            most,
            work: [Vec::with_capacity(widest), Vec::with_capacity(widest)],
        })
    }

    /// The next probability, after what was seen with the last one.
    pub fn decide(&mut self, seen: &[f64; INPUTS.len()], probability: f64) -> f64 {
        let [now, next] = &mut self.work;
        now.clear();
        now.extend(self.inputs.iter().map(|&index| seen[index]));
        let last = self.layers.len() - 1;
        for (number, layer) in self.layers.iter().enumerate() {
            let floor = if number == last {
                f64::NEG_INFINITY
            } else {
                0.0
            };
            next.clear();
            next.extend(layer.weights.iter().zip(&layer.bias).map(|(row, bias)| {
                let terms = row
                    .iter()
                    .zip(&*now)
                    .map(|(weight, number)| weight * number);
                terms.fold(*bias, |sum, term| sum + term).max(floor)
            }));
            core::mem::swap(now, next);
        }
        let wanted = match &self.output {
            Output::Probability => now[0],
            Output::Changes(changes) => {
                let mut best = 0;
                for (index, value) in now.iter().enumerate() {
                    if *value > now[best] {
                        best = index;
                    }
                }
                probability + changes[best]
            }
        };
        // `max` comes first, as it makes a number of what is not one.
        wanted.max(0.0).min(self.most)
    }
}

/// The entries of a list; none of anything else.
fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The numbers of a list of nothing else.
fn numbers(value: &Json) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(Json::as_f64).collect()
}

impl Layer {
    fn read(layer: &Json, inputs: usize, outputs: Option<usize>) -> Result<Self, String> {
        let bias = layer.get("bias").and_then(numbers);
        let bias = bias.filter(|bias| match outputs {
            Some(outputs) => bias.len() == outputs,
            None => (1..=WIDEST).contains(&bias.len()),
        });
        let bias = bias.ok_or_else(|| match outputs {
            Some(outputs) => format!("bias: must be {outputs} numbers, one per output"),
            None => format!("bias: must be 1 to {WIDEST} numbers"),
        })?;
        let rows = layer.get("weights").and_then(Json::as_array);
        let rows: Option<Vec<Vec<f64>>> = rows.map(|rows| rows.iter().map_while(numbers).collect());
        let rows = rows.filter(|rows| rows.len() == bias.len());
        let rows = rows.filter(|rows| rows.iter().all(|row| row.len() == inputs));
        let weights = rows.ok_or_else(|| {
            let count = bias.len();
            format!(
                "weights: must be {count} lists, one per bias, of {inputs} numbers, one per input"
            )
        })?;
        Ok(Self { weights, bias })
    }
}
