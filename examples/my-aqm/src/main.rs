//! Runs an experiment file with a discipline that Sojourn does not have: `my-aqm experiment.toml`.

mod my_madpie;

use std::path::Path;
use std::process::ExitCode;

use sojourn_sim::{Monitor, RunResult};

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: my-aqm FILE");
        return ExitCode::from(2);
    };
    match run(Path::new(&file)) {
        Ok(results) => {
            println!("{:<12} {:>14} {:>12}", "queue", "sojourn p99 ms", "dropped");
            for result in results {
                let down = &result.bottleneck["down"];
                let p99 = down.sojourn_ms.percentile("p99");
                println!("{:<12} {p99:>14.1} {:>12}", result.label, down.dropped_aqm);
            }
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Every arm of an experiment, once, with its first seed.
fn run(file: &Path) -> Result<Vec<RunResult>, String> {
    let mut catalogue = sojourn_sim::catalogue();
    catalogue.add(my_madpie::my_madpie());
    let names = sojourn_sim::names_in(&catalogue);
    let plan = sojourn_experiment::read_file(file, &[], &names).map_err(|error| error.to_string())?;
    let experiment = &plan.cells[0].experiment;
    (0..experiment.queues.len())
        .map(|queue| sojourn_sim::run(experiment, queue, experiment.seed, &catalogue, &Monitor::new()))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}
