//! Runs an experiment file with a discipline that Sojourn does not have: `my-aqm experiment.toml`.

mod my_madpie;
mod step_drop;

use std::path::Path;
use std::process::ExitCode;

use sojourn_experiment::RunSpec;
use sojourn_sim::RunResult;

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
                let p99 = down.sojourn_ms.p99.unwrap_or(f64::NAN);
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

/// Runs every arm of an experiment once, with the first seed.
fn run(file: &Path) -> Result<Vec<RunResult>, String> {
    let mut catalogue = sojourn_sim::catalogue();
    catalogue.disciplines.add(my_madpie::my_madpie());
    catalogue.disciplines.add(step_drop::step_drop());
    let names = sojourn_sim::names_in(&catalogue);
    let plan = sojourn_experiment::read_file(file, &[], &names).map_err(|error| error.to_string())?;
    let first_seed = |spec: &RunSpec| spec.seed == spec.experiment.seed;
    plan.cells[0]
        .specs()
        .filter(first_seed)
        .map(|spec| sojourn_sim::run(spec, &catalogue))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn results(text: &str) -> Result<Vec<RunResult>, String> {
        let thread = std::thread::current().id();
        let file = std::env::temp_dir().join(format!("my-aqm-{}-{thread:?}.toml", std::process::id()));
        std::fs::write(&file, text).expect("the directory is writable");
        let results = run(&file);
        std::fs::remove_file(&file).expect("it was written");
        results
    }

    #[test]
    fn it_does_what_sojourns_madpie_does() {
        // Without the burst shield madpie is the same algorithm, and both draw the same random numbers.
        let results = results(include_str!("../experiment.toml")).expect("the experiment is good");
        let [pie, madpie, mine] = &results[..] else { panic!("three arms") };
        let figures = |result: &RunResult| {
            let down = &result.bottleneck["down"];
            (down.delivered_packets, down.dropped_aqm, down.sojourn_ms.p99, result.events)
        };
        assert_eq!(figures(mine), figures(madpie));
        assert_ne!(figures(mine), figures(pie));
    }

    #[test]
    fn its_key_is_checked_like_any_other() {
        let text = include_str!("../experiment.toml");
        let wrong = text.replace("aqm = \"my_madpie\"", "aqm = \"my_madpie\"\ndeterministic_abov = \"30 ms\"");
        let message = results(&wrong).expect_err("no such key");
        assert!(message.contains("did you mean \"deterministic_above\""), "{message}");
    }

    #[test]
    fn the_algorithm_takes_less_than_forty_lines() {
        let source = include_str!("my_madpie.rs");
        let lines = source.lines().skip_while(|line| !line.contains("ANCHOR:")).skip(1);
        assert!(lines.take_while(|line| !line.contains("ANCHOR_END")).count() < 40);
    }
}
