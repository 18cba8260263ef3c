//! The agent's program: the first process of a virtual machine, or `sojourn-agent run JOB RECORDING` as root.

use std::fs;
use std::process::ExitCode;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use sojourn_agent::executor::{Failure, execute, init, interrupts};

const USAGE: &str =
    "usage: sojourn-agent run JOB RECORDING (as root), or as the init of a virtual machine";

fn main() -> ExitCode {
    if std::process::id() == 1 {
        init::main();
        return ExitCode::FAILURE;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--version"] => {
            println!("sojourn-agent {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        ["run", job, recording] => run(job, recording),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("sojourn-agent: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(job: &str, recording: &str) -> Result<(), Failure> {
    let text = fs::read(job)?;
    let job = serde_json::from_slice(&text).map_err(|error| Failure(format!("{job}: {error}")))?;
    // End if the process that waits for the recording is killed.
    set_pdeathsig(Signal::SIGTERM).map_err(|error| Failure(error.to_string()))?;
    // Signals are blocked here; the run notices them and cleans up.
    interrupts()
        .thread_block()
        .map_err(|error| Failure(error.to_string()))?;
    let done = execute(&job, &mut |seconds| println!("@second {seconds}"))?;
    let bytes = done
        .to_bytes()
        .map_err(|error| Failure(error.to_string()))?;
    fs::write(recording, bytes)?;
    Ok(())
}
