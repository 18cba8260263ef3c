//! Runs an experiment file with a congestion control that Sojourn does not have: `my-cc experiment.toml`.

mod scalable;

use std::path::Path;
use std::process::ExitCode;

use sojourn_sim::RunResult;

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: my-cc FILE");
        return ExitCode::from(2);
    };
    match run(Path::new(&file)) {
        Ok(results) => {
            println!("{:<32} {:>14} {:>14} {:>8}", "", "goodput Mbit/s", "sojourn p95 ms", "dropped");
            for (name, result) in results {
                let down = &result.bottleneck["down"];
                let goodput = result.flows[0].goodput_bps / 1e6;
                let p95 = down.sojourn_ms.p95.unwrap_or(f64::NAN);
                println!("{name:<32} {goodput:>14.1} {p95:>14.1} {:>8}", down.dropped_overflow);
            }
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Runs every cell of the sweep once, with the first queue and the first seed.
fn run(file: &Path) -> Result<Vec<(String, RunResult)>, String> {
    let mut catalogue = sojourn_sim::catalogue();
    catalogue.congestion_controls.add(scalable::scalable());
    let names = sojourn_sim::names_in(&catalogue);
    let plan = sojourn_experiment::read_file(file, &[], &names).map_err(|error| error.to_string())?;
    let mut results = Vec::new();
    for cell in &plan.cells {
        let spec = cell.specs().next().ok_or("no runs")?;
        let set: Vec<String> = spec.set.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let result = sojourn_sim::run(spec, &catalogue).map_err(|error| error.to_string())?;
        results.push((set.join(", "), result));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_a_link_busy_that_reno_leaves_idle() {
        let results = run(Path::new("experiment.toml")).expect("the experiment is good");
        let [reno, _, scalable] = &results[..] else { panic!("three controls") };
        let utilization = |(_, result): &(String, RunResult)| result.bottleneck["down"].utilization;
        assert!(utilization(reno) < 0.85, "{}", utilization(reno));
        assert!(utilization(scalable) > 0.9, "{}", utilization(scalable));
    }

    #[test]
    fn a_name_that_is_not_in_the_catalogue_is_told() {
        let text = include_str!("../experiment.toml").replace("\"scalable\"", "\"scalabel\"");
        let file = std::env::temp_dir().join(format!("my-cc-{}.toml", std::process::id()));
        std::fs::write(&file, text).expect("the directory is writable");
        let message = run(&file).expect_err("no such control");
        std::fs::remove_file(&file).expect("it was written");
        assert!(message.contains("did you mean \"scalable\""), "{message}");
    }
}
