//! Runs every arm of an experiment file under every seed and prints a summary per line, as JSON:
//! `run_file FILE [KEY=VALUE …]`. One thread and nothing else in the process: what benchmarks and profiles look at.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

// As in the Python bindings.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("usage: run_file FILE [KEY=VALUE …]");
        return ExitCode::from(2);
    };
    let mut overrides = Vec::new();
    for set in arguments {
        let Some((key, value)) = set.split_once('=') else {
            eprintln!("run_file: got \"{set}\"; must be KEY=VALUE");
            return ExitCode::from(2);
        };
        overrides.push((key.to_owned(), value.to_owned()));
    }
    match run(Path::new(&file), &overrides) {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, message)) => {
            eprintln!("{message}");
            ExitCode::from(status)
        }
    }
}

fn run(file: &Path, overrides: &[(String, String)]) -> Result<(), (u8, String)> {
    let plan = sojourn_experiment::read_file(file, overrides, &sojourn_sim::names())
        .map_err(|error| (2, error.to_string()))?;
    let catalogue = sojourn_sim::catalogue();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for spec in plan.specs() {
        let result = sojourn_sim::run(spec, &catalogue).map_err(|error| (1, error.to_string()))?;
        serde_json::to_writer(&mut out, &result).map_err(|error| (1, error.to_string()))?;
        writeln!(out).map_err(|error| (1, error.to_string()))?;
    }
    Ok(())
}
