//! Runs every arm of an experiment file once and prints the summary: `run_file FILE [KEY=VALUE …]`.

use std::path::Path;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("an experiment file");
    let overrides: Vec<(String, String)> = arguments
        .filter_map(|set| {
            set.split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        })
        .collect();
    let names = sojourn_sim::names();
    let plan = sojourn_experiment::read_file(Path::new(&file), &overrides, &names).unwrap_or_else(
        |error| {
            eprintln!("{error}");
            std::process::exit(2);
        },
    );
    let catalogue = sojourn_sim::catalogue();
    let monitor = sojourn_sim::Monitor::new();
    for cell in &plan.cells {
        for queue in 0..cell.experiment.queues.len() {
            for seed in
                cell.experiment.seed..cell.experiment.seed + u64::from(cell.experiment.repeat)
            {
                let result = sojourn_sim::run(&cell.experiment, queue, seed, &catalogue, &monitor)
                    .unwrap_or_else(|error| panic!("{error}"));
                println!(
                    "{}",
                    serde_json::to_string(&result).expect("figures are numbers")
                );
            }
        }
    }
}
